"""What stands between the clients and the nodes of the virtual world: addresses, proxies and scripted servers."""
import re

import testing
from testing.cut import Cut, arguments, frame_end
from testing.resp import url_of
from world import Broken, Node, checked, ffi, lib, stand_ins, watched


class _Address:
    """That a client connects to, in the place of a server's own."""

    def __init__(self, server, accepting, login=(None, None)):
        self.path = lib.virtual_path(server)
        self.host, self.port = "127.0.0.1", lib.FIRST_PATH + self.path
        self.name = "%s:%d" % (self.host, self.port)
        self.url = url_of((self.host, self.port), *login)
        if not accepting:
            lib.virtual_shut(self.path, 1)

    def open(self):
        lib.virtual_shut(self.path, 0)

    def close(self):
        """With the world."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class BlackHole(_Address):
    """It takes no connection, and refuses none."""

    def __init__(self):
        super().__init__(0, accepting=False)


stand_ins["BlackHole"] = BlackHole


class _Watched(_Address):
    """An address at which the test sees what clients send before it goes further."""

    def watch(self, on=True):
        if on != (self in watched):
            (watched.append if on else watched.remove)(self)
            lib.virtual_watch(self.path, on)

    def connected(self):
        """The connections, by number and serial."""
        serial = ffi.new("uint32_t *")
        number = -1
        while True:
            number = lib.virtual_next_connection(self.path, number, serial)
            if number < 0:
                return
            yield number, serial[0]

    @staticmethod
    def kept(connection):
        """What a client has sent, and has not gone further."""
        size = lib.virtual_kept(*connection, ffi.NULL, 0)
        bytes_ = ffi.new("char[]", size)
        lib.virtual_kept(*connection, bytes_, size)
        return ffi.buffer(bytes_, size)[:]


class Proxy(_Watched):
    """An address before a model server: the kit's Proxy, but that it looks at no replies."""

    def __init__(self, target, accepting=True):
        if not isinstance(target, Node):
            raise Broken("the virtual world has proxies before nodes only")
        super().__init__(target.index, accepting, target.login)
        self.watches, self.cuts, self.seen = [], [], {}
        self.is_acting = False

    def __getattr__(self, name):
        raise Broken("the virtual world has no Proxy.%s" % name)

    @staticmethod
    def _directions(direction):
        return {"up": [0], "down": [1], "both": [0, 1]}[direction]

    def hold(self, direction="both"):
        for one in self._directions(direction):
            lib.virtual_hold(self.path, one, 0)

    def silence(self, direction="both"):
        for one in self._directions(direction):
            lib.virtual_hold(self.path, one, 1)

    def go(self):
        self.watches, self.cuts, self.seen = [], [], {}
        self.watch(False)
        lib.virtual_go(self.path)

    def delay(self, up_ms=0, down_ms=0):
        lib.virtual_path_delays(self.path, int(up_ms * 1e6), int(down_ms * 1e6))

    def black_hole(self):
        lib.virtual_path_swallows(self.path)

    def refuse(self):
        lib.virtual_path_refuses(self.path)

    def lead_to(self, target):
        lib.virtual_path_leads(self.path, target.index)

    def drop(self, late=False):
        lib.virtual_drop(self.path, late)

    def deliver(self):
        lib.virtual_deliver(self.path)

    @property
    def connections(self):
        return lib.virtual_connections(self.path)

    def held_bytes(self, direction="both"):
        found, bytes_ = b"", ffi.new("char[]", 1 << 16)
        for one in self._directions(direction):
            found += ffi.buffer(bytes_, min(lib.virtual_held(self.path, one, bytes_, 1 << 16), 1 << 16))[:]
        return found

    def when(self, pattern, action, direction="up"):
        raw = pattern.encode() if isinstance(pattern, str) else pattern
        self._expect(direction, self.watches, (re.compile(raw, re.S), action))

    def at(self, name, key, action, nth=1, byte=None, direction="up"):
        self._expect(direction, self.cuts, Cut(direction, name, key, nth, byte, action))

    def _expect(self, direction, places, place):
        if direction != "up":
            raise Broken("the virtual world looks at no replies")
        places.append(place)
        self.watch()

    def look(self):
        if self.is_acting:  # nothing else passes meanwhile
            return
        self.is_acting = True
        for connection in list(self.connected()):
            self._look_at(connection)
        self.is_acting = False
        if not self.watches and not self.cuts:
            self.watch(False)
            self.seen.clear()

    def _look_at(self, connection):
        data = self.kept(connection)[self.seen.get(connection, 0):]
        for watch in [watch for watch in self.watches if watch[0].search(data)]:
            self.watches.remove(watch)
            watch[1]()
        while data:
            size = frame_end(data) if self.cuts else len(data)
            if not size:
                return
            self._pass_frame(connection, data[:size])
            data = data[size:]

    def _pass_frame(self, connection, frame):
        done, found = 0, []
        if self.cuts:
            words = arguments(frame)
            found = [cut for cut in self.cuts if cut.is_at(words)]
        self.cuts = [cut for cut in self.cuts if cut not in found]
        for cut in sorted(found, key=lambda cut: cut.place(len(frame))):
            self._pass(connection, cut.place(len(frame)) - done)
            done = cut.place(len(frame))
            cut.action()
        self._pass(connection, len(frame) - done)

    def _pass(self, connection, size):
        passed = checked(lib.virtual_pass(*connection, size))
        self.seen[connection] = self.seen.get(connection, 0) + size - passed


class _Dialogue:
    """One connection to a scripted server."""

    def __init__(self, connection, steps):
        self.connection, self.steps, self.data, self.is_over = connection, steps, b"", False

    def shutdown(self, how):
        self.end()

    def end(self, is_reset=False):
        self.is_over = True
        lib.virtual_end(*self.connection, is_reset)


class FakeServer(_Watched, testing.FakeServer):
    """The kit's, at an address of the world."""

    def __init__(self, replies=None, accepting=True):
        testing.FakeServer.__init__(self, replies, accepting)

    def _listen(self, accepting):
        _Watched.__init__(self, checked(lib.virtual_server()), accepting)
        self.dialogues = {}
        self.watch()

    name = url = None

    def let_go(self):
        self._go.set()
        self.look()

    def look(self):
        for connection in list(self.connected()):
            if connection not in self.dialogues:
                self.accepted += 1
                self.dialogues[connection] = _Dialogue(connection, self._steps("CONNECT", [], b""))
                self.connections.append(self.dialogues[connection])
            dialogue = self.dialogues[connection]
            dialogue.data += self.kept(connection)
            lib.virtual_take(*connection)
            while not dialogue.is_over and self._goes_on(dialogue):
                pass

    def _steps(self, name, args, otherwise):
        reply = self._take(name, args, otherwise)
        return list(reply) if isinstance(reply, tuple) else [reply]

    def _goes_on(self, dialogue):
        if dialogue.steps:
            step = dialogue.steps[0]
            if step == testing.HOLD and not self._go.is_set():
                return False
            del dialogue.steps[0]
            self._do(dialogue, step)
            return True
        size = frame_end(dialogue.data)
        if not size:
            return False
        args, dialogue.data = arguments(dialogue.data[:size]), dialogue.data[size:]
        name = self._note(args)
        dialogue.steps = self._steps(name, args, None)
        return True

    @staticmethod
    def _do(dialogue, step):
        if step in (testing.CLOSE, testing.RESET):
            dialogue.end(is_reset=step == testing.RESET)
        elif step != testing.HOLD:
            lib.virtual_say(*dialogue.connection, step, len(step))
