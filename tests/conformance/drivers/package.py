"""What the two surfaces of the Python package share as faces of the conformance suite."""
import lines
from lines import facts, now_ms

import libredlock

CAN = ("lock acquire start wait extend release state validity detach adopt cancel fork exit exception status describe "
       "renew body nul reentrant").split()
FOREVER_S = 365 * 86400.0  # what the option wait_ms allows


class BodyFailed(Exception):
    """The body of a `with` block fails with it."""


def waiting(wait_ms):
    """The arguments of Lock.acquire that wait so long."""
    if wait_ms == 0:
        return {"blocking": False}
    return {"timeout": FOREVER_S if wait_ms == -1 else -1 if wait_ms == -2 else wait_ms / 1000}


class Driver(lines.Driver):
    FAILURES = libredlock.RedlockError, TypeError, ValueError, OverflowError
    Client = None  # of the surface

    def client(self, message):
        options = lines.options(message)
        nodes = options.pop("nodes", None)
        self.clients[message["client"]] = self.Client(nodes, **lines.keywords(options))
        return {"status": "OK"}

    def lock(self, message):
        client, options = self.known("client", message), lines.keywords(lines.options(message))
        make = client.rlock if options.pop("reentrant", False) else client.lock
        self.locks[message["lock"]] = make(lines.resources(message), **options)
        return {"status": "OK"}

    def adopt(self, message):
        client, options = self.known("client", message), lines.keywords(lines.options(message))
        self.locks[message["lock"]] = client.adopt(lines.resources(message), message["token"], **options)
        return {"status": "OK"}

    def state(self, message):
        return lines.state(self.known("lock", message))

    def validity(self, message):
        return lines.validity(self.known("lock", message))

    def detach(self, message):
        lock = self.known("lock", message)
        return dict(facts(lock, now_ms()), status="OK", token=lock.detach())

    def describe(self, message):
        return {"status": "OK", "describe": self.known("client", message).describe()}
