"""A virtual world in the place of real servers: the core, the network and model servers of tests/sim, on a time that
passes only where a test waits. It has the names of the library, of the kit's nodes and of the modules time and select,
so that the tests of tests/live/virtual run in it and on real servers. What stands between clients and nodes is in
world_paths.py."""
import io
import os
import threading
import zlib

import cffi

import testing
from testing.resp import RespConnection, encode

LIBRARY = os.environ.get("REDLOCK_VIRTUAL")  # libvirtual.so of the preset testbuild; where it is not set all is real
LATENCY_NS = 20_000, 100_000
FOR_EVER_NS = 3_600_000_000_000
POLL_NS = 1_000_000  # how often descriptors are looked at
EVENTS_SHOWN = 60

ffi = cffi.FFI()
ffi.cdef("""
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
lib = ffi.dlopen(LIBRARY) if LIBRARY else None
watched = []  # addresses at which something looks at what passes


class Broken(Exception):
    """The virtual world can not go on: it lacks something, or a call waits for ever."""


def checked(value=None):
    failure = ffi.string(lib.virtual_failure()).decode(errors="replace")
    if failure:
        raise Broken(failure)
    return value


def start(name):
    """A new world, in which all is as it was when a case of this name ran before."""
    Call.every.clear()
    Call.here = threading.local()
    watched.clear()
    lib.virtual_start(zlib.crc32(name.encode()), *LATENCY_NS)


def events():
    """What has happened last."""
    lines = (ffi.string(lib.virtual_event(ago)).decode(errors="replace") for ago in range(EVENTS_SHOWN))
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
    until_ns = lib.virtual_now_ns() + int(within_ns)
    call = getattr(Call.here, "call", None)
    if call:
        call.wait(lambda: condition() or lib.virtual_now_ns() >= until_ns, until_ns)
    while call is None:
        ready = next((one for one in Call.every if one.may_go_on()), None)
        if ready:
            ready.go_on()
        elif condition() or lib.virtual_now_ns() >= until_ns:
            break
        else:
            lib.virtual_run(min([until_ns, *(one.until_ns for one in Call.every)]))
            checked()
            if lib.virtual_news():
                for one in list(watched):
                    one.look()
    checked()


def _poll(look, within_s):
    """What is found, or not found until then."""
    end_ns = lib.virtual_now_ns() + int(within_s * 1e9)
    found = look()
    while not found and lib.virtual_now_ns() < end_ns:
        _wait(lambda: False, min(end_ns - lib.virtual_now_ns(), POLL_NS))
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
        if name.endswith("_free") and ffi.string(lib.virtual_failure()):
            return None
        process = self.processes[numbers[0]]
        signed = [number - (1 << 64) if number >= 1 << 63 else number for number in numbers]
        address = ffi.cast("void *", int(self.ffi.cast("intptr_t", function)))
        thread, found = lib.virtual_call(process, address, signed + [0] * (6 - len(signed))), ffi.new("int64_t *")
        has_returned = []
        _wait(lambda: has_returned or lib.virtual_returned(process, thread, found) and not has_returned.append(1),
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
        process = ffi.new("int *")
        client = int(ffi.cast("intptr_t", checked(lib.virtual_client(process))))
        self.processes[client] = process[0]
        return self.ffi.cast("redlock_client *", client)


class time:
    """Of the module that tests use."""

    @staticmethod
    def sleep(duration_s):
        _wait(lambda: False, duration_s * 1e9)

    @staticmethod
    def monotonic():
        return lib.virtual_now_ns() / 1e9

    @staticmethod
    def time_ns():
        return lib.virtual_epoch_ns() + lib.virtual_now_ns()

    @staticmethod
    def time():
        return time.time_ns() / 1e9


class select:
    @staticmethod
    def select(readers, writers, others, timeout_s):
        return _poll(lambda: [one for one in readers if lib.virtual_readable(one)], timeout_s), [], []


class Pulse:
    """helpers.Pulse, where nothing is late."""

    def __init__(self, *connections):
        self.late_s = 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


stand_ins = {"time": time, "select": select, "Call": Call, "Pulse": Pulse}


def enter(*modules):
    """These modules wait in the world from now on."""
    for module in modules:
        for name, value in stand_ins.items():
            if hasattr(module, name):
                setattr(module, name, value)


class _Reply(RespConnection):
    def __init__(self, file):
        self.file = file


class _Connection:
    """Of a test to a model server: it asks as the kit does, and may subscribe to a channel."""

    def __init__(self, node, timeout_s):
        self.node, self.timeout_s, self.number = node, timeout_s, None
        self.heard = io.BytesIO()

    def command(self, *args):
        if args[0] != "SUBSCRIBE":
            return self.node.command(*args)
        channel = args[1] if isinstance(args[1], bytes) else args[1].encode()
        self.number = lib.virtual_listen(self.node.index, channel)
        if self.number < 0:
            raise Broken("more connections than the world can hold")
        return [b"subscribe", channel, 1]

    def read(self):
        if self.heard.tell() == len(self.heard.getvalue()):
            bytes_ = ffi.new("char[]", 1 << 16)
            size = _poll(lambda: lib.virtual_heard(self.number, bytes_, 1 << 16), self.timeout_s)
            if not size:
                raise TimeoutError("nothing comes")
            self.heard = io.BytesIO(ffi.buffer(bytes_, size)[:])
        return _Reply(self.heard).read()

    def close(self):
        if self.number is not None:
            lib.virtual_listen_no_more(self.number)


class Node(testing.Node):
    """A model server; what the kit says of nodes is asked of it as of a real one."""

    def __init__(self, is_durable=False, password=None, cluster_enabled=False):
        self.is_durable = is_durable  # it writes each command to its disk
        self.index = checked(lib.virtual_server())
        self.host, self.port, self.path = "127.0.0.1", lib.FIRST_PORT + self.index, None
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
        request, size = encode(*args), ffi.new("size_t *")
        reply = lib.virtual_command(self.index, request, len(request), size)
        reply = _Reply(io.BytesIO(ffi.buffer(reply, size[0])[:] if checked(size[0]) else b"")).read()
        if isinstance(reply, testing.ReplyError):
            raise reply
        return reply

    def connect(self, timeout_s=30.0):
        return _Connection(self, timeout_s)

    def launch(self):
        self._boot(lib.BOOT_WITH_ALL if self.is_durable else lib.BOOT_WITH_SAVED)

    def wait_ready(self):
        """It is, when it was launched."""

    def kill(self):
        lib.virtual_kill(self.index)
        self.is_alive, self.stopped = False, False

    def stop(self):
        lib.virtual_stop(self.index, 1)
        self.stopped = True

    def cont(self):
        lib.virtual_stop(self.index, 0)
        checked()
        self.stopped = False

    def restart(self, empty=False):
        self.kill()
        self._boot(lib.BOOT_EMPTY if empty else lib.BOOT_WITH_ALL)

    def _boot(self, how):
        lib.virtual_boot(self.index, how)
        self.is_alive, self.stopped = True, False
        self.runs += 1

    def step(self, seconds):
        """Of its clock."""
        lib.virtual_step_clock(self.index, int(seconds * 1e9))

    def reset(self):
        if self.stopped:
            self.cont()
        if not self.is_alive:
            self._boot(lib.BOOT_EMPTY)
        self.delete_keys()
        self.command("CONFIG", "RESETSTAT")
        return self.has_marker

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
