"""A soak's history for the judge (tests/judge): operations on locks as their callers saw them, one JSON object a line.

Times are ms of CLOCK_MONOTONIC. What an operation says is a lower bound: a lock is held from the return of its
acquisition until its release was called or the validity that was stated ended, whichever came first.
"""
import json
import subprocess
import threading

import faces
from common import now_ms

JUDGE = faces.ROOT / "build/judge/judge"


class History:
    def __init__(self, path):
        self.path = path
        self.file = open(path, "w", encoding="utf-8")
        self.mutex = threading.Lock()

    def write(self, op, **fields):
        with self.mutex:
            self.file.write(json.dumps(dict(fields, op=op)) + "\n")

    def close(self):
        self.file.close()


class Hold:
    """One hold of a lock, whose operations go into the history; end_ms is its end as far as the holder was told. Those
    of a lock of several resources go there for each. One of several permits has a slot."""

    def __init__(self, history, client, resource, took, shared=False, permits=0):
        self.history = history
        self.resources = resource if isinstance(resource, list) else [resource]
        self.names = {"client": client, "token": took.token}
        self.from_ms = self.told_ms = now_ms()
        self.end_ms = took.t0_ms + took.validity_ms
        self.released_ms = None
        self.lost = False
        self.slot = took.slot if permits else 0
        self.write("acquire", took.t0_ms, self.from_ms, until_ms=self.end_ms, fence=took.get("fence") or None,
                   shared=shared, permits=permits, slot=self.slot)

    def write(self, op, call_ms, return_ms, **fields):
        for resource in self.resources:
            self.history.write(op, **self.names, resource=resource, call_ms=call_ms, return_ms=return_ms, **fields)

    def told(self, call_ms, until_ms):
        """The holder was told that it still holds the lock; after a loss this is for the judge to refuse."""
        self.told_ms = now_ms()
        self.write("hold", call_ms, self.told_ms, until_ms=until_ms)
        if not self.lost:
            self.end_ms = max(self.end_ms, until_ms)

    def lose(self, at_ms):
        """Its loss may be as late as the last reply that it is held, even if the validity stated there was over."""
        if not self.lost:
            self.lost = True
            self.end_ms = min(self.end_ms, at_ms)
            self.write("lose", self.end_ms, max(self.end_ms, self.told_ms))

    def release(self):
        """It is about to be released: from now on it is not held, whatever comes of that."""
        self.released_ms = now_ms()

    def close(self):
        """After its release, or when the holder was killed: it then held the lock until now at the latest."""
        if self.released_ms is None or self.released_ms > self.end_ms:
            self.lose(now_ms())
        elif not self.lost:
            self.end_ms = self.released_ms
            self.write("release", self.released_ms, now_ms())


def judge(path):
    """The judge's exit status and words."""
    done = subprocess.run([JUDGE, path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout.strip()
