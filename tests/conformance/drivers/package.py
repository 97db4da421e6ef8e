"""What the two surfaces of the Python package share as faces of the conformance suite."""
import lines
from lines import facts, now_ms

import libredlock

CAN = ("lock acquire start wait extend release state validity detach adopt cancel fork exit exception status describe "
       "renew body nul reentrant sharing election close").split()
FOREVER_S = 365 * 86400.0  # what the option wait_ms allows


class BodyFailed(Exception):
    """The body of a `with` block fails with it."""


def waiting(wait_ms):
    """The arguments of Lock.acquire that wait so long."""
    if wait_ms == 0:
        return {"blocking": False}
    return {"timeout": FOREVER_S if wait_ms == -1 else -1 if wait_ms == -2 else wait_ms / 1000}


class Handle:
    """What the suite calls a lock: the acquisitions of one holder, one after the other."""

    def __init__(self, lock, hold=None):
        self.lock, self.hold, self.said, self.is_over = lock, hold, {}, False

    def take(self, got):
        """What acquire() gave, as a status."""
        if got is False:
            self.said = self.lock.refused.votes
            return "BUSY"
        self.hold, self.said, self.is_over = got, {}, False
        return "OK"

    def failed(self, error):
        self.said = getattr(error, "votes", {})

    def to_act_on(self):
        """The hold until its release; then the lock, which refuses."""
        return self.lock if self.hold is None or self.is_over else self.hold

    def let_go(self):
        """After a release: what is lost is told once."""
        if self.hold is not None and self.lock is not None:
            self.is_over = not self.hold.locked() and self.hold.loss != "forked"

    def block(self):
        self.is_over = False
        return self.hold if self.lock is None else self.lock

    token = property(lambda self: self.hold.token if self.hold else "")
    fence = property(lambda self: self.hold.fence if self.hold else None)
    slot = property(lambda self: self.hold.slot if self.hold else None)
    remaining = property(lambda self: self.hold.remaining if self.hold else 0.0)
    votes = property(lambda self: self.said or (self.hold.votes if self.hold else {}))
    lost = property(lambda self: self.hold is not None and not self.is_over and self.hold.loss not in (None, "forked"))

    def owned(self):
        return self.hold is not None and self.hold.owned()


class Caller(Handle):
    """One of those that share a lock object: a thread or task, which speaks of its hold by the object's methods."""

    def to_act_on(self):
        return self.lock

    def let_go(self):
        pass

    def own(self, fact):
        try:
            return getattr(self.lock, fact)
        except libredlock.NotHeld:
            return None

    token = property(lambda self: self.own("token") or "")
    fence = property(lambda self: self.own("fence"))
    slot = property(lambda self: self.own("slot"))
    remaining = property(lambda self: self.lock.remaining)
    votes = property(lambda self: self.said or self.own("votes") or {})
    lost = property(lambda self: self.lock.lost)

    def owned(self):
        return self.lock.owned()


class Candidate(Handle):
    """One of an election: what it acquires is its next term."""

    def __init__(self, election, acquire):
        super().__init__(self)
        self.election, self.acquire = election, acquire

    def to_act_on(self):
        return self.hold


class Driver(lines.Driver):
    FAILURES = libredlock.RedlockError, TypeError, ValueError, OverflowError
    Client = None  # of the surface

    def __init__(self):
        super().__init__()
        self.callers = {}

    def client(self, message):
        options = lines.options(message)
        nodes = options.pop("nodes", None)
        self.clients[message["client"]] = self.Client(nodes, **lines.keywords(options))
        return {"status": "OK"}

    def lock(self, message):
        client, options = self.known("client", message), lines.keywords(lines.options(message))
        make = client.rlock if options.pop("reentrant", False) else client.lock
        self.locks[message["lock"]] = Handle(make(lines.resources(message), **options))
        return {"status": "OK"}

    def adopt(self, message):
        client, options = self.known("client", message), lines.keywords(lines.options(message))
        self.locks[message["lock"]] = Handle(None, client.adopt(lines.resources(message), message["token"], **options))
        return {"status": "OK"}

    def election(self, message):
        client, options = self.known("client", message), lines.keywords(lines.options(message))
        self.locks[message["lock"]] = self.candidate(client.election(lines.resources(message), **options))
        return {"status": "OK"}

    def caller(self, message):
        known = self.known("lock", message)
        election = getattr(known, "election", None)
        caller = Caller(known.lock) if election is None else self.candidate(election)
        self.locks[lines.text(message, "caller")] = self.callers[caller] = caller
        return {"status": "OK"}

    def detach(self, message):
        lock = self.known("lock", message)
        return dict(facts(lock, now_ms()), status="OK", token=lock.to_act_on().detach())

    def describe(self, message):
        return {"status": "OK", "describe": self.known("client", message).describe()}
