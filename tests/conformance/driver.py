"""A driver's process, and the people who talk through it: parties, their clients and locks."""
import itertools
import json
import signal
import subprocess
import threading

import common
import faces
from common import lapsing, now_ms  # noqa: F401
from forked import Forked
from testing import ReplyError

REPLY_S = 150
STATUSES = set("OK PENDING BUSY NO_QUORUM TIMED_OUT CANCELLED LOST NOT_HELD LIMIT FORKED IN_FLIGHT INVALID "
               "REFUSED_CONFIG NO_MEMORY INTERNAL UNREACHABLE QUARANTINED".split())
# Many cases wait for a node that hangs; a command that ends tells slow nodes, too, before their keys are looked for.
GENEROUS_TIMEOUTS = dict(common.GENEROUS_TIMEOUTS, node_timeout_ms=1000, exit_drain_ms=5000)


class ProtocolError(Exception):
    """A driver broke the protocol, or ended; the words name its source file and the line of its output."""


class Overstated(AssertionError):
    """More validity was told than the nodes give."""

    def __init__(self, reply, by_ms):
        super().__init__("validity is over-stated by %.3f ms: %r" % (by_ms, dict(reply)))
        self.reply, self.by_ms = reply, by_ms


def as_field(value):
    """Bytes travel in hexadecimal; a list is a lock of several resources."""
    if isinstance(value, list):
        return [as_field(one) for one in value]
    return {"hex": value.hex()} if isinstance(value, bytes) else value


def as_options(options):
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}


class Reply(dict):
    """A reply; its fields are attributes, and it reads as its status in comparisons."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError("the reply has no %r: %r" % (name, dict(self))) from None

    def __eq__(self, other):
        return self.status == other if isinstance(other, str) else dict.__eq__(self, other)

    def __ne__(self, other):
        return not self == other

    __hash__ = None


class Call:
    """A message on its way."""

    def __init__(self, driver, message):
        self.driver, self.message, self.reply = driver, message, None
        self.done = threading.Event()

    def result(self, within_s=REPLY_S):
        if not self.done.wait(within_s):
            raise ProtocolError("%s: no reply within %g s to %s" % (self.driver.name, within_s, self.message))
        if self.driver.broken and self.reply is None:
            raise ProtocolError(self.driver.broken)
        if "malformed" in self.reply:
            raise ProtocolError("%s, line %s of its input: %s: %s" % (
                self.driver.name, self.reply.get("line"), self.reply["malformed"], self.message))
        return self.reply


def start(argv, environment):
    if argv[1:] and argv[1].startswith(str(faces.DRIVERS)) and argv[1].endswith(".py"):
        return Forked(argv, environment)
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)


class Driver:
    """One process of a face."""

    def __init__(self, face, argv=None, environment=None):
        self.face = face
        self.name = "tests/conformance/drivers/" + faces.SOURCES.get(face, "?")
        self.broken = None
        self.ids = itertools.count(1)
        self.calls = {}
        self.mutex = threading.Lock()
        self.process = start(argv or faces.ARGV[face], environment or faces.environment())
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    @property
    def pid(self):
        return self.process.pid

    def send(self, do, **fields):
        """A message without waiting for its reply."""
        message = dict(fields, do=do, id=next(self.ids))
        call = Call(self, message)
        with self.mutex:
            self.calls[message["id"]] = call
            if self.broken:
                call.done.set()
                return call
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            pass  # the reader says what has become of it
        return call

    def call(self, do, **fields):
        return self.send(do, **fields).result()

    def close(self):
        """The end of its input ends a driver; one that hangs is ended."""
        self.process.send_signal(signal.SIGCONT)
        try:
            self.process.stdin.close()
        except OSError:
            pass
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.reader.join(60)
        self.process.stdout.close()

    def has_ended(self, within_s=30):
        try:
            self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self):
        self.process.kill()
        self.process.wait()

    # -- the reader

    def _read(self):
        problem = None
        for number, line in enumerate(self.process.stdout, 1):
            problem = self._take(line)
            if problem:
                problem = "%s, line %d of its output: %s: %r" % (self.name, number, problem, line[:200])
                break
        with self.mutex:
            self.broken = problem or "%s: the driver ended" % self.name
            for call in self.calls.values():
                call.done.set()

    def _take(self, line):
        """Hands a reply to whoever waits for it: what is wrong with the line, or None."""
        try:
            reply = json.loads(line)
        except ValueError as error:
            return "not JSON (%s)" % error
        if not isinstance(reply, dict):
            return "not an object"
        with self.mutex:
            call = self.calls.pop(reply.get("id"), None)
        if call is None:
            return "there is no message with this id"
        if "malformed" not in reply and call.message["do"] != "hello" and reply.get("status") not in STATUSES:
            with self.mutex:
                self.calls[reply["id"]] = call
            return '"status" is missing or none of redlock.h'
        call.reply = Reply(reply)
        call.done.set()
        return None


class Party:
    """A process of a face with one client on it: what a case talks to."""

    _names = itertools.count(1)

    def __init__(self, face, servers, nodes=None, environment=None, **options):
        self.face, self.cluster = face, servers
        self.driver = Driver(face, environment=environment)
        self.hello = self.driver.call("hello")
        self.can = set(self.hello.can)
        urls = ",".join(servers.urls if nodes is None else nodes)
        self.options = as_options(dict(GENEROUS_TIMEOUTS, nodes=urls, **servers.options, **options))
        self.prefix = self.options.get("key_prefix", "").encode()
        self.client = "client%d" % next(self._names)
        self.opened = self.driver.call("client", client=self.client, options=self.options)

    @property
    def pid(self):
        return self.driver.pid

    def lock(self, resource="r", **options):
        name = "lock%d" % next(self._names)
        lock = Lock(self, name, resource)
        lock.made = self.driver.call("lock", lock=name, client=self.client, resource=as_field(resource),
                                     options=as_options(options))
        return lock

    def election(self, resource="r", **options):
        """A candidate, as a lock: what it acquires is its next term, and a caller of it is another candidate."""
        lock = Lock(self, "lock%d" % next(self._names), resource)
        lock.made = self.driver.call("election", lock=lock.name, client=self.client, resource=as_field(resource),
                                     options=as_options(options))
        return lock

    def close_client(self):
        return self.driver.call("close", client=self.client)

    def adopt(self, resource, token, **options):
        name = "lock%d" % next(self._names)
        lock = Lock(self, name, resource)
        lock.made = self.driver.call("adopt", lock=name, client=self.client, resource=as_field(resource), token=token,
                                     options=as_options(options))
        return lock

    def status(self, resource):
        return self.driver.call("status", client=self.client, resource=as_field(resource))

    def describe(self):
        return self.driver.call("describe", client=self.client).describe

    def fork(self, *commands):
        """The replies of a forked child to these messages: (do, lock), or (do, None, fields)."""
        reply = self.driver.call("fork", commands=[self._of_child(*command) for command in commands])
        for number, one in enumerate(reply.replies, 1):
            if "malformed" in one:
                raise ProtocolError("%s, command %d of a fork: %s: %s" % (
                    self.driver.name, number, one["malformed"], commands[number - 1]))
        return [Reply(one) for one in reply.replies]

    def _of_child(self, do, lock, fields=None):
        named = {"lock": lock.name} if lock else {"client": self.client}
        return dict(named, **(fields or {}), do=do)

    def exit(self, mode):
        """The process leaves: its exit status."""
        self.driver.send("exit", mode=mode)
        self.driver.process.wait(60)
        return self.driver.process.returncode

    def close(self):
        self.driver.close()


class Lock:
    """A lock of a party. Whatever was acquired or extended is compared with what the nodes say."""

    def __init__(self, party, name, resource):
        self.party, self.name, self.resource = party, name, resource
        self.driver = party.driver
        self.made = None
        self.token = ""
        self.slot = None

    def callers(self, number):
        """So many others who use the same object, each in a thread, a task or a Fiber of its own."""
        callers = [Lock(self.party, "lock%d" % next(Party._names), self.resource) for _ in range(number)]
        for caller in callers:
            assert self.driver.call("caller", lock=self.name, caller=caller.name) == "OK"
        return callers

    @property
    def keys(self):
        """A permit has the key of its slot."""
        resources = self.resource if isinstance(self.resource, list) else [self.resource]
        before = self.party.prefix + (b"libredlock:s:%d:" % self.slot if self.slot else b"")
        return [before + (one if isinstance(one, bytes) else one.encode()) for one in resources]

    @property
    def key(self):
        (only,) = self.keys
        return only

    def _done(self, reply):
        self.token = reply.get("token") or self.token
        self.slot = reply.get("slot") if "slot" in reply else self.slot
        return reply

    def acquire(self, wait_ms=0):
        return self.checked(self._done(self.driver.call("acquire", lock=self.name, wait_ms=wait_ms)))

    def waiting(self, wait_ms=-1):
        """An acquisition that runs on by itself: Waiting."""
        return Waiting(self, wait_ms)

    def extend(self, ttl_ms=0):
        return self.checked(self._done(self.driver.call("extend", lock=self.name, ttl_ms=ttl_ms)))

    def release(self):
        return self._done(self.driver.call("release", lock=self.name))

    def start(self, what="acquire", arg=-1):
        return self.driver.call("start", lock=self.name, what=what, arg=arg)

    def wait(self, limit_ms=30000):
        return self._done(self.driver.call("wait", lock=self.name, limit_ms=limit_ms))

    def detach(self):
        return self._done(self.driver.call("detach", lock=self.name))

    def body(self):
        """Enters the scoped form."""
        return self.checked(self._done(self.driver.call("body", lock=self.name)))

    def again(self):
        """Enters the scoped form once more, releases the lock in it, and leaves it."""
        return self.driver.call("again", lock=self.name)

    def leave(self, fail=False):
        return self.driver.call("leave", lock=self.name, fail=fail)

    @property
    def state(self):
        return self.driver.call("state", lock=self.name).state

    @property
    def validity_ms(self):
        return self.validity().validity_ms

    def validity(self):
        return self.checked(self.driver.call("validity", lock=self.name))

    def checked(self, reply):
        if reply == "OK" and reply.get("validity_ms"):
            over = overstated_ms(reply, self)
            if over is not None and over > 0:
                raise Overstated(reply, over)
        return reply


class Waiting:
    """An acquisition in progress, through whichever message the face has for it."""

    def __init__(self, lock, wait_ms):
        self.lock = lock
        self.started = "start" in lock.party.can and lock.party.hello.cancel == "command"
        if self.started:
            assert lock.start("acquire", wait_ms) == "OK"
            self.call = lock.driver.send("wait", lock=lock.name, limit_ms=-1)
        else:
            self.call = lock.driver.send("acquire", lock=lock.name, wait_ms=wait_ms)

    @property
    def pending(self):
        return not self.call.done.is_set()

    def cancel(self):
        """By a message where the driver can take one meanwhile, else as Ctrl-C does."""
        if self.lock.party.hello.cancel == "signal":
            self.lock.driver.process.send_signal(signal.SIGINT)
        else:
            self.lock.driver.call("cancel", lock=self.lock.name)

    def result(self):
        return self.lock.checked(self.lock._done(self.call.result()))


def refusal(party, **options):
    """The first reply that is not OK on the way to a lock: some faces see a wrong option only there."""
    if party.opened != "OK":
        return party.opened
    lock = party.lock(**options)
    return lock.made if lock.made != "OK" else lock.acquire()


def overstated_ms(reply, lock):
    """By how much t0 + validity lies above what a majority of the nodes still gives; None where too few can be asked.

    A node gives until (time after its PTTL reply) + PTTL + 1 ms, without the token until that reply at the latest; one
    that cannot be asked might give for ever.
    """
    cluster = lock.party.cluster
    token = reply.get("token", lock.token).encode()
    ends = [min(_end_ms(node, key, token) for key in lock.keys) for node in cluster.nodes]
    end = sorted(ends, reverse=True)[cluster.quorum - 1]
    return None if end == float("inf") else reply.t0_ms + reply.validity_ms - end


def _end_ms(node, key, token):
    """On a connection of its own: the node's fate may be decided by another thread just now."""
    if not node.alive or node.stopped:
        return float("inf")
    try:
        connection = node.connect(1)
        try:
            value, pttl, score, clock, count = connection.pipeline(
                [("GET", key), ("PTTL", key), ("ZSCORE", key, b"rl:" + token), ("TIME",), ("HGET", key, token)])
            after_ms = now_ms()
        finally:
            connection.close()
    except (OSError, ValueError):
        return float("inf")
    if isinstance(pttl, ReplyError):
        return float("inf")
    if isinstance(score, bytes):  # of one that shares the key
        return after_ms + float(score) - (int(clock[0]) * 1000 + int(clock[1]) // 1000) + 1
    return after_ms + pttl + 1 if value == token or isinstance(count, bytes) else after_ms
