"""The shared library through cffi, as thin as it goes: tests call what C programs call."""
import contextlib
import enum
import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = os.environ.get("REDLOCK_LIBRARY") or str(ROOT / "build/dev/libredlock.so")

sys.path[:0] = [str(ROOT / "bindings"), str(ROOT / "tests")]
import cdef  # noqa: E402
from common import GENEROUS_TIMEOUTS, lapsing  # noqa: E402, F401

ffi = cdef.parsed()
if os.environ.get("REDLOCK_VIRTUAL"):
    import world

    lib = world.Library(ffi)
else:
    lib = ffi.dlopen(LIBRARY)


def _enum(title, tag):
    values = ffi.typeof("enum " + tag).relements
    return enum.IntEnum(title, {name.split("REDLOCK_", 1)[1]: value for name, value in values.items()})


Status = _enum("Status", "redlock_status")
State = enum.IntEnum("State", {name.replace("STATE_", ""): value for name, value in
                               _enum("State", "redlock_state").__members__.items()})
Loss = enum.IntEnum("Loss", {name.replace("LOSS_", ""): value for name, value in
                             _enum("Loss", "redlock_loss").__members__.items()})
Verdict = enum.IntEnum("Verdict", {name.replace("VERDICT_", ""): value for name, value in
                                   _enum("Verdict", "redlock_verdict").__members__.items()})
Operation = _enum("Operation", "redlock_operation")
OK, PENDING, BUSY, NO_QUORUM, TIMED_OUT = (Status.OK, Status.PENDING, Status.BUSY, Status.NO_QUORUM, Status.TIMED_OUT)
CANCELLED, LOST, NOT_HELD, LIMIT, FORKED = (Status.CANCELLED, Status.LOST, Status.NOT_HELD, Status.LIMIT, Status.FORKED)
IN_FLIGHT, INVALID, REFUSED_CONFIG = Status.IN_FLIGHT, Status.INVALID, Status.REFUSED_CONFIG
UNREACHABLE, INTERNAL, QUARANTINED = Status.UNREACHABLE, Status.INTERNAL, Status.QUARANTINED
HELD, FREE, ADOPTED = State.HELD, State.FREE, State.ADOPTED
ACQUIRE, EXTEND, RELEASE, INSPECT = Operation.ACQUIRE, Operation.EXTEND, Operation.RELEASE, Operation.INSPECT
EXPIRE, REMOVE, LIST = Operation.EXPIRE, Operation.REMOVE, Operation.LIST

AT_ONCE = lib.REDLOCK_AT_ONCE

WORDS, TTL_MS, TOKEN = lib.REDLOCK_ANSWER_WORDS, lib.REDLOCK_ANSWER_TTL_MS, lib.REDLOCK_ANSWER_TOKEN


def text(call, *args):
    """The whole of a text that `call` copies."""
    size = 256
    while True:
        buf = ffi.new("char[]", size)
        length = call(*args, buf, size)
        if length < 0:
            raise ValueError(Status(-length).name)
        if length < size:
            return ffi.buffer(buf, length)[:].decode("utf-8", "surrogateescape")
        size = length + 1


def _bytes(value):
    return value if isinstance(value, bytes) else str(value).encode()


class Client:
    """redlock_client; opened unless open=False. Every option that is set has to be taken, unless open=False."""

    def __init__(self, nodes=None, open=True, **options):
        self.handle = lib.redlock_client_new()
        assert self.handle
        self.locks = []
        if nodes is not None:
            options = dict({"nodes": nodes if isinstance(nodes, str) else ",".join(nodes)}, **options)
        for name, value in options.items():
            status = self.set(name, value)
            assert status == OK, (status, self.message)
        if open:
            status = self.open()
            assert status == OK, (status, self.message)

    def set(self, name, value):
        return Status(lib.redlock_client_set(self.handle, _bytes(name), _bytes(value)))

    def get(self, name):
        return text(lib.redlock_client_get, self.handle, _bytes(name))

    def open(self):
        return Status(lib.redlock_client_open(self.handle))

    @property
    def message(self):
        return text(lib.redlock_client_message, self.handle)

    @property
    def fd(self):
        return lib.redlock_client_fd(self.handle)

    def process(self):
        return Status(lib.redlock_client_process(self.handle))

    def next(self):
        """The next tag, or None."""
        tag = ffi.new("uint64_t *")
        return tag[0] if lib.redlock_client_next(self.handle, tag) == 1 else None

    def advance(self):
        tag = ffi.new("uint64_t *")
        return tag[0] if lib.redlock_client_advance(self.handle, tag) == 1 else None

    def drain(self, limit_ms=-1):
        return Status(lib.redlock_client_drain(self.handle, limit_ms))

    def events(self):
        """All events that are queued, parsed."""
        found = []
        while True:
            line = text(lib.redlock_client_event, self.handle)
            if not line:
                return found
            found.append(json.loads(line))

    def describe(self):
        return json.loads(text(lib.redlock_client_describe, self.handle))

    def metrics(self):
        return text(lib.redlock_client_metrics, self.handle)

    def settled(self):
        """Whether every node is connected or known to be unusable."""
        self.process()
        return all(node["state"] in ("ready", "refused") or (node["state"] == "down" and node["why"])
                   for node in self.describe()["nodes"])

    @property
    def node_count(self):
        return lib.redlock_client_node_count(self.handle)

    def node_name(self, node):
        return text(lib.redlock_client_node_name, self.handle, node)

    def lock(self, resource="r", *more, **options):
        lock = Lock(self, resource)
        for another in more:
            assert lock.add(another) == OK, lock.message
        for name, value in options.items():
            status = lock.set(name, value)
            assert status == OK, (status, lock.message)
        return lock

    def free(self):
        """The locks first, as most programs do."""
        for lock in self.locks:
            lock.free()
        self.free_alone()

    def free_alone(self):
        handle, self.handle = self.handle, ffi.NULL
        lib.redlock_client_free(handle)


class Lock:
    """redlock_lock. acquire makes one attempt unless told to wait."""

    def __init__(self, client, resource):
        data = _bytes(resource)
        self.client = client
        self.handle = lib.redlock_lock_new(client.handle, data, len(data))
        assert self.handle
        client.locks.append(self)

    def set(self, name, value):
        return Status(lib.redlock_lock_set(self.handle, _bytes(name), _bytes(value)))

    def add(self, resource):
        data = _bytes(resource)
        return Status(lib.redlock_lock_add(self.handle, data, len(data)))

    def check(self):
        return Status(lib.redlock_lock_check(self.handle))

    def get(self, name):
        return text(lib.redlock_lock_get, self.handle, _bytes(name))

    def set_tag(self, tag):
        return Status(lib.redlock_lock_set_tag(self.handle, tag))

    def acquire(self, wait_ms=0):
        return Status(lib.redlock_lock_acquire(self.handle, wait_ms))

    def extend(self, ttl_ms=0):
        return Status(lib.redlock_lock_extend(self.handle, ttl_ms))

    def release(self):
        return Status(lib.redlock_lock_release(self.handle))

    def expire(self, ttl_ms=0):
        return Status(lib.redlock_lock_expire(self.handle, ttl_ms))

    def remove(self):
        return Status(lib.redlock_lock_remove(self.handle))

    def settle(self, limit_ms=30000):
        return Status(lib.redlock_lock_settle(self.handle, limit_ms))

    def start(self, operation, arg=0):
        return Status(lib.redlock_lock_start(self.handle, operation, arg))

    @property
    def status(self):
        return Status(lib.redlock_lock_status(self.handle))

    def wait(self, limit_ms=30000):
        return Status(lib.redlock_lock_wait(self.handle, limit_ms))

    def cancel(self):
        return Status(lib.redlock_lock_cancel(self.handle))

    @property
    def state(self):
        return State(lib.redlock_lock_state(self.handle))

    @property
    def loss(self):
        return Loss(lib.redlock_lock_loss(self.handle))

    @property
    def validity_ms(self):
        return lib.redlock_lock_validity_ms(self.handle)

    @property
    def fence(self):
        return lib.redlock_lock_fence(self.handle)

    @property
    def slot(self):
        return lib.redlock_lock_slot(self.handle)

    @property
    def attempts(self):
        return lib.redlock_lock_attempts(self.handle)

    @property
    def token(self):
        return text(lib.redlock_lock_token, self.handle)

    def adopt(self, token):
        return Status(lib.redlock_lock_adopt(self.handle, _bytes(token)))

    def adopt_bytes(self, token):
        return Status(lib.redlock_lock_adopt_bytes(self.handle, token, len(token)))

    def detach(self):
        return Status(lib.redlock_lock_detach(self.handle))

    def vote(self, node):
        return Status(lib.redlock_lock_vote(self.handle, node))

    @property
    def votes(self):
        return [self.vote(node) for node in range(self.client.node_count)]

    def said(self, words):
        """By how many nodes."""
        return sum(words in self.answer(node) for node in range(len(self.votes)))

    def answer(self, node, field=WORDS):
        return text(lib.redlock_lock_answer, self.handle, node, field)

    @property
    def verdict(self):
        return Verdict(lib.redlock_lock_verdict(self.handle))

    @property
    def holder(self):
        return text(lib.redlock_lock_holder, self.handle)

    def who(self, limit_ms=5000):
        return lib.redlock_lock_who(self.handle, limit_ms)

    @property
    def held_by(self):
        """A dict, or None."""
        found = text(lib.redlock_lock_held_by, self.handle)
        return json.loads(found) if found else None

    def list(self, limit_ms=-1):
        return Status(lib.redlock_lock_list(self.handle, limit_ms))

    @property
    def rows(self):
        """Of the list, as dicts, with the bytes of each name."""
        count = lib.redlock_lock_listed(self.handle, lib.REDLOCK_LISTED_ROWS)
        return [json.loads(text(lib.redlock_lock_row, self.handle, i, lib.REDLOCK_ROW_JSON)) | {
            "name": text(lib.redlock_lock_row, self.handle, i, lib.REDLOCK_ROW_RESOURCE)} for i in range(count)]

    @property
    def has_more(self):
        return lib.redlock_lock_listed(self.handle, lib.REDLOCK_LISTED_MORE) == 1

    @property
    def keys_passed(self):
        return lib.redlock_lock_listed(self.handle, lib.REDLOCK_LISTED_KEYS)

    @property
    def holder_ttl_ms(self):
        return lib.redlock_lock_holder_ttl_ms(self.handle)

    @property
    def message(self):
        return text(lib.redlock_lock_message, self.handle)

    def free(self):
        handle, self.handle = self.handle, ffi.NULL
        lib.redlock_lock_free(handle)


@contextlib.contextmanager
def opened(nodes, **options):
    """A client for a with block, with generous time-outs unless told otherwise."""
    client = Client(nodes, **dict(GENEROUS_TIMEOUTS, **options))
    try:
        yield client
    finally:
        client.free()
