"""A virtual world in the place of real servers: the core, the network and model servers of tests/sim, on a time that
passes only where a test waits. It has the names of the library, of the kit's nodes and of the modules time and select,
so that the tests of tests/live/virtual run in it and on real servers."""
import io
import os
import re
import threading
import zlib

import cffi

import testing
from testing.cut import Cut, arguments, frame_end
from testing.resp import RespConnection, encode, url_of

LIBRARY = os.environ.get("REDLOCK_VIRTUAL")  # libvirtual.so of the preset testbuild; where it is not set all is real
LATENCY_NS = 20_000, 100_000
FOR_EVER_NS = 3_600_000_000_000
POLL_NS = 1_000_000  # how often descriptors are looked at
EVENTS_SHOWN = 60

_ffi = cffi.FFI()
_ffi.cdef("""
void virtual_start(uint64_t seed, int64_t delay_min_ns, int64_t delay_max_ns);
const char *virtual_failure(void);
const char *virtual_event(int ago);
int64_t virtual_now_ns(void);
int64_t virtual_epoch_ns(void);
int virtual_run(int64_t until_ns);
void *virtual_client(int *process);
int virtual_call(int process, void *function, const int64_t *arguments);
int virtual_returned(int process, int thread, int64_t *result);
int virtual_server(void);
const char *virtual_command(int server, const char *bytes, size_t size, size_t *reply_size);
void virtual_stop(int server, int on);
void virtual_kill(int server);
void virtual_boot(int server, int how);
void virtual_step_clock(int server, int64_t by_ns);
int virtual_path(int server);
void virtual_path_leads(int path, int server);
void virtual_path_refuses(int path);
void virtual_path_swallows(int path);
void virtual_path_delays(int path, int64_t up_ns, int64_t down_ns);
void virtual_shut(int path, int on);
void virtual_hold(int path, int direction, int only_those_of_now);
void virtual_go(int path);
void virtual_drop(int path, int is_late);
void virtual_deliver(int path);
int virtual_connections(int path);
size_t virtual_held(int path, int direction, char *bytes, size_t size);
void virtual_watch(int path, int on);
int virtual_news(void);
int virtual_next_connection(int path, int after, uint32_t *serial);
size_t virtual_kept(int connection, uint32_t serial, char *bytes, size_t size);
size_t virtual_pass(int connection, uint32_t serial, size_t size);
void virtual_take(int connection, uint32_t serial);
void virtual_say(int connection, uint32_t serial, const char *bytes, size_t size);
void virtual_end(int connection, uint32_t serial, int is_reset);
int virtual_readable(int descriptor);
int virtual_listen(int server, const char *channel);
size_t virtual_heard(int connection, char *bytes, size_t size);
void virtual_listen_no_more(int connection);
enum { FIRST_PORT = 20000, FIRST_PATH = 21000 };
enum { BOOT_EMPTY, BOOT_WITH_SAVED, BOOT_WITH_ALL };
""")
_world = _ffi.dlopen(LIBRARY) if LIBRARY else None


class Broken(Exception):
    """The virtual world can not go on: it lacks something, or a call waits for ever."""


def _checked(value=None):
    failure = _ffi.string(_world.virtual_failure()).decode(errors="replace")
    if failure:
        raise Broken(failure)
    return value


def start(name):
    """A new world, in which all is as it was when a case of this name ran before."""
    Call.every.clear()
    Call.here = threading.local()
    _Watched.every.clear()
    _world.virtual_start(zlib.crc32(name.encode()), *LATENCY_NS)


def events():
    """What has happened last."""
    lines = (_ffi.string(_world.virtual_event(ago)).decode(errors="replace") for ago in range(EVENTS_SHOWN))
    return "\n".join(reversed([line for line in lines if line]))


class Call:
    """helpers.Call: a thread of the test. Of all threads one runs at a time, until it waits, and world time passes only
    where all do."""

    every, here = [], threading.local()

    def __init__(self, function, *args):
        self.function, self.args, self.result, self.error = function, args, None, None
        self.is_over, self.may_go_on, self.until_ns = False, lambda: True, FOR_EVER_NS
        self.turn, self.rest = threading.Semaphore(0), threading.Semaphore(0)
        self.every.append(self)
        threading.Thread(target=self._run, daemon=True).start()
        self.go_on()

    def _run(self):
        self.turn.acquire()
        self.here.call = self
        try:
            self.result = self.function(*self.args)
        except BaseException as error:  # for the test's thread
            self.error = error
        self.is_over = True
        self.every.remove(self)
        self.rest.release()

    def go_on(self):
        """Until it waits or ends."""
        self.turn.release()
        self.rest.acquire()

    def wait(self, condition, until_ns):
        self.may_go_on, self.until_ns = condition, until_ns
        self.rest.release()
        self.turn.acquire()

    def is_alive(self):
        return not self.is_over

    def join(self, within_s=60):
        _wait(lambda: self.is_over, within_s * 1e9)
        assert self.is_over, "the call does not return"
        if self.error:
            raise self.error
        return self.result


def _wait(condition, within_ns):
    """Lets time pass until the condition is true, and not for longer than that."""
    until_ns = _world.virtual_now_ns() + int(within_ns)
    call = getattr(Call.here, "call", None)
    if call:
        call.wait(lambda: condition() or _world.virtual_now_ns() >= until_ns, until_ns)
    while call is None:
        ready = next((one for one in Call.every if one.may_go_on()), None)
        if ready:
            ready.go_on()
        elif condition() or _world.virtual_now_ns() >= until_ns:
            break
        else:
            _world.virtual_run(min([until_ns, *(one.until_ns for one in Call.every)]))
            _checked()
            if _world.virtual_news():
                for one in list(_Watched.every):
                    one.look()
    _checked()


def _poll(look, within_s):
    """What is found, or not found until then."""
    end_ns = _world.virtual_now_ns() + int(within_s * 1e9)
    found = look()
    while not found and _world.virtual_now_ns() < end_ns:
        _wait(lambda: False, min(end_ns - _world.virtual_now_ns(), POLL_NS))
        found = look()
    return found


class Library:
    """redlock.h as cffi's library has it. A function runs in a thread of its client's process in the world."""

    def __init__(self, ffi):
        self.ffi, self.lib, self.processes = ffi, ffi.dlopen(LIBRARY), {}

    def __getattr__(self, name):
        found = getattr(self.lib, name)
        if isinstance(found, self.ffi.CData) and self.ffi.typeof(found).kind == "function":
            found = self._function(name, found)
        setattr(self, name, found)
        return found

    def _function(self, name, function):
        kind = self.ffi.typeof(function)
        if not kind.args or kind.args[0].kind != "pointer" or kind.args[0].item.kind != "struct":
            return function

        def call(*arguments):
            return self._call(function, kind, name, arguments)

        return call

    def _number(self, kind, value, kept):
        if isinstance(value, bytes):
            value = self.ffi.from_buffer(value + b"\0")
            kept.append(value)
        return int(self.ffi.cast("intptr_t", value)) if kind.kind == "pointer" else value

    def _call(self, function, kind, name, arguments):
        kept = []
        numbers = [self._number(one, value, kept) for one, value in zip(kind.args, arguments)]
        if not numbers[0]:
            return function(*arguments)
        if name.endswith("_free") and _ffi.string(_world.virtual_failure()):
            return None
        process = self.processes[numbers[0]]
        signed = [number - (1 << 64) if number >= 1 << 63 else number for number in numbers]
        address = _ffi.cast("void *", int(self.ffi.cast("intptr_t", function)))
        thread, found = _world.virtual_call(process, address, signed + [0] * (6 - len(signed))), _ffi.new("int64_t *")
        has_returned = []
        _wait(lambda: has_returned or _world.virtual_returned(process, thread, found) and not has_returned.append(1),
              FOR_EVER_NS)
        if not has_returned:
            raise Broken("%s waits for ever" % name)
        result = self._result(kind.result, found[0])
        if kind.result.kind == "pointer" and kind.result.item.kind == "struct":
            self.processes[found[0]] = process
        return result

    def _result(self, kind, value):
        if kind.kind == "void":
            return None
        return self.ffi.cast(kind, value) if kind.kind == "pointer" else int(self.ffi.cast(kind, value))

    def redlock_client_new(self):
        process = _ffi.new("int *")
        client = int(_ffi.cast("intptr_t", _checked(_world.virtual_client(process))))
        self.processes[client] = process[0]
        return self.ffi.cast("redlock_client *", client)


class time:
    """Of the module that tests use."""

    @staticmethod
    def sleep(duration_s):
        _wait(lambda: False, duration_s * 1e9)

    @staticmethod
    def monotonic():
        return _world.virtual_now_ns() / 1e9

    @staticmethod
    def time_ns():
        return _world.virtual_epoch_ns() + _world.virtual_now_ns()

    @staticmethod
    def time():
        return time.time_ns() / 1e9


class select:
    @staticmethod
    def select(readers, writers, others, timeout_s):
        return _poll(lambda: [one for one in readers if _world.virtual_readable(one)], timeout_s), [], []


class Pulse:
    """helpers.Pulse, where nothing is late."""

    def __init__(self, *connections):
        self.late_s = 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


def enter(*modules):
    """These modules wait in the world from now on."""
    for module in modules:
        for name in ("time", "select", "Call", "Pulse", "BlackHole"):
            if hasattr(module, name):
                setattr(module, name, globals()[name])


class _Reply(RespConnection):
    def __init__(self, text):
        self.file = io.BytesIO(text)


class _Connection:
    """Of a test to a model server: it asks as the kit does, and may subscribe to a channel."""

    def __init__(self, node, timeout_s):
        self.node, self.timeout_s, self.number = node, timeout_s, None

    def command(self, *args):
        if args[0] != "SUBSCRIBE":
            return self.node.command(*args)
        channel = args[1] if isinstance(args[1], bytes) else args[1].encode()
        self.number = _world.virtual_listen(self.node.index, channel)
        if self.number < 0:
            raise Broken("more connections than the world can hold")
        return [b"subscribe", channel, 1]

    def read(self):
        bytes_ = _ffi.new("char[]", 1 << 16)
        size = _poll(lambda: _world.virtual_heard(self.number, bytes_, 1 << 16), self.timeout_s)
        if not size:
            raise TimeoutError("nothing comes")
        return _Reply(_ffi.buffer(bytes_, size)[:]).read()

    def close(self):
        if self.number is not None:
            _world.virtual_listen_no_more(self.number)


class Node(testing.Node):
    """A model server; what the kit says of nodes is asked of it as of a real one."""

    def __init__(self, is_durable=False, password=None, cluster_enabled=False):
        self.is_durable = is_durable  # it writes each command to its disk
        self.index = _checked(_world.virtual_server())
        self.host, self.port, self.path = "127.0.0.1", _world.FIRST_PORT + self.index, None
        self.password, self.login, self.tls = password, (None, password), None
        self.stopped, self.marker = False, None
        self.is_alive, self.runs = True, 0
        if password is not None:
            self.config_set("requirepass", password)
            self.command("AUTH", password)
        if cluster_enabled:
            self.config_set("cluster-enabled", "yes")

    alive = property(lambda self: self.is_alive)
    pid = property(lambda self: 1000 * (self.index + 1) + self.runs)

    def command(self, *args):
        if self.stopped or not self.is_alive:
            raise ConnectionError("the model server does not answer")
        request, size = encode(*args), _ffi.new("size_t *")
        reply = _world.virtual_command(self.index, request, len(request), size)
        reply = _Reply(_ffi.buffer(reply, size[0])[:] if _checked(size[0]) else b"").read()
        if isinstance(reply, testing.ReplyError):
            raise reply
        return reply

    def connect(self, timeout_s=30.0):
        return _Connection(self, timeout_s)

    def launch(self):
        self._boot(_world.BOOT_WITH_ALL if self.is_durable else _world.BOOT_WITH_SAVED)

    def wait_ready(self):
        """It is, when it was launched."""

    def kill(self):
        _world.virtual_kill(self.index)
        self.is_alive, self.stopped = False, False

    def stop(self):
        _world.virtual_stop(self.index, 1)
        self.stopped = True

    def cont(self):
        _world.virtual_stop(self.index, 0)
        _checked()
        self.stopped = False

    def restart(self, empty=False):
        self.kill()
        self._boot(_world.BOOT_EMPTY if empty else _world.BOOT_WITH_ALL)

    def _boot(self, how):
        _world.virtual_boot(self.index, how)
        self.is_alive, self.stopped = True, False
        self.runs += 1

    def step(self, seconds):
        """Of its clock."""
        _world.virtual_step_clock(self.index, int(seconds * 1e9))

    def reset(self):
        if self.stopped:
            self.cont()
        if not self.is_alive:
            self._boot(_world.BOOT_EMPTY)
        self.delete_keys()
        self.command("CONFIG", "RESETSTAT")

    def close(self):
        """With the world."""


class Cluster(testing.Cluster):
    def __init__(self, n=5, bootstrap=None, bootstrapped=True, key_prefix="", max_ttl=None, config=None, password=None,
                 cluster_enabled=False, **how):
        is_durable = (config or {}).get("appendonly") == "yes"  # whatever it syncs: the system does not end
        if config and set(config) - {"appendonly", "appendfsync"}:
            how["config"] = config
        if how:
            raise Broken("the virtual world has no servers with %s" % ", ".join(how))
        self.bootstrapped, self.key_prefix, self.max_ttl, self.tls = bootstrapped, key_prefix, max_ttl, None
        self._bootstrap_for = bootstrap
        self.nodes = [Node(is_durable, password, cluster_enabled) for _ in range(n)]
        if bootstrapped:
            self.bootstrap()

    def bootstrap(self, key_prefix=None, max_ttl=None, nodes=None):
        chosen = self.nodes if nodes is None else list(nodes)
        prefix = self.key_prefix if key_prefix is None else key_prefix
        longest = self.max_ttl if max_ttl is None else max_ttl
        options = {**({"key_prefix": prefix} if prefix else {}),
                   **({} if longest is None else {"max_ttl_ms": round(longest * 1000)})}
        self._bootstrap_for([node.url for node in chosen], options)
        if chosen == self.nodes and (prefix, longest) == (self.key_prefix, self.max_ttl):
            for node in chosen:
                node.note_marker(prefix + "libredlock:m")

    def close(self):
        """With the world."""


class _Address:
    """That a client connects to, in the place of a server's own."""

    def __init__(self, server, accepting, login=(None, None)):
        self.path = _world.virtual_path(server)
        self.host, self.port = "127.0.0.1", _world.FIRST_PATH + self.path
        self.name = "%s:%d" % (self.host, self.port)
        self.url = url_of((self.host, self.port), *login)
        if not accepting:
            _world.virtual_shut(self.path, 1)

    def open(self):
        _world.virtual_shut(self.path, 0)

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


class _Watched(_Address):
    """An address at which the test sees what clients send before it goes further."""

    every = []

    def watch(self, on=True):
        if on != (self in self.every):
            (self.every.append if on else self.every.remove)(self)
            _world.virtual_watch(self.path, on)

    def connected(self):
        """The connections, by number and serial."""
        serial = _ffi.new("uint32_t *")
        number = -1
        while True:
            number = _world.virtual_next_connection(self.path, number, serial)
            if number < 0:
                return
            yield number, serial[0]

    @staticmethod
    def kept(connection):
        """What a client has sent, and has not gone further."""
        size = _world.virtual_kept(*connection, _ffi.NULL, 0)
        bytes_ = _ffi.new("char[]", size)
        _world.virtual_kept(*connection, bytes_, size)
        return _ffi.buffer(bytes_, size)[:]


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
            _world.virtual_hold(self.path, one, 0)

    def silence(self, direction="both"):
        for one in self._directions(direction):
            _world.virtual_hold(self.path, one, 1)

    def go(self):
        self.watches, self.cuts, self.seen = [], [], {}
        self.watch(False)
        _world.virtual_go(self.path)

    def delay(self, up_ms=0, down_ms=0):
        _world.virtual_path_delays(self.path, int(up_ms * 1e6), int(down_ms * 1e6))

    def black_hole(self):
        _world.virtual_path_swallows(self.path)

    def refuse(self):
        _world.virtual_path_refuses(self.path)

    def lead_to(self, target):
        _world.virtual_path_leads(self.path, target.index)

    def drop(self, late=False):
        _world.virtual_drop(self.path, late)

    def deliver(self):
        _world.virtual_deliver(self.path)

    @property
    def connections(self):
        return _world.virtual_connections(self.path)

    def held_bytes(self, direction="both"):
        found, bytes_ = b"", _ffi.new("char[]", 1 << 16)
        for one in self._directions(direction):
            found += _ffi.buffer(bytes_, min(_world.virtual_held(self.path, one, bytes_, 1 << 16), 1 << 16))[:]
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
        passed = _checked(_world.virtual_pass(*connection, size))
        self.seen[connection] = self.seen.get(connection, 0) + size - passed


class _Dialogue:
    """One connection to a scripted server."""

    def __init__(self, connection, steps):
        self.connection, self.steps, self.data, self.is_over = connection, steps, b"", False

    def shutdown(self, how):
        self.end()

    def end(self, is_reset=False):
        self.is_over = True
        _world.virtual_end(*self.connection, is_reset)


class FakeServer(_Watched, testing.FakeServer):
    """The kit's, at an address of the world."""

    def __init__(self, replies=None, accepting=True):
        testing.FakeServer.__init__(self, replies, accepting)

    def _listen(self, accepting):
        _Watched.__init__(self, _checked(_world.virtual_server()), accepting)
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
            _world.virtual_take(*connection)
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
            _world.virtual_say(*dialogue.connection, step, len(step))
