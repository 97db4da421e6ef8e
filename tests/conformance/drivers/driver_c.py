"""The ABI as C programs use it, by way of cffi: started operations move by the clients' descriptors alone."""
import os
import select
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "live"))

import lines  # noqa: E402
from lines import now_ms, send  # noqa: E402

import rl  # noqa: E402

CAN = ("lock acquire start wait extend release state validity detach adopt cancel fork exit status describe renew "
       "nul reentrant").split()
OPERATIONS = {"acquire": rl.ACQUIRE, "extend": rl.EXTEND, "release": rl.RELEASE}
STATES = {rl.State.HELD: "HELD", rl.State.LOST: "LOST"}


def outcome(lock, status):
    """What an operation came to."""
    return {"status": status.name, "t0_ms": lock.t0_ms, "validity_ms": lock.validity_ms,
            "token": lock.token, "votes": [lock.answer(node) for node in range(lock.client.node_count)],
            "message": lock.message, "fence": lock.fence or None, "slot": lock.slot if lock.slot >= 0 else None}


class Driver(lines.Driver):
    def __init__(self):
        super().__init__()
        self.waiting = {}

    # -- commands

    def hello(self, message):
        version = rl.ffi.string(rl.lib.redlock_version()).decode()
        return {"face": "c", "version": version, "pid": os.getpid(), "can": CAN, "cancel": "command"}

    def client(self, message):
        client, status = rl.Client(open=False), rl.OK
        for name, value in lines.options(message).items():
            status = status or client.set(name, value)
        status = status or client.open()
        if status == rl.OK:
            self.clients[lines.text(message, "client")] = client
            return {"status": "OK"}
        reply = {"status": status.name, "message": client.message}
        client.free()
        return reply

    def lock(self, message):
        return self.made(message, lambda lock: rl.OK)

    def adopt(self, message):
        token = lines.text(message, "token")
        return self.made(message, lambda lock: lock.adopt(token))

    def made(self, message, then):
        name, options = lines.text(message, "lock"), lines.options(message)
        resources = lines.resources(message)
        first, *more = (resources or [b""]) if isinstance(resources, list) else [resources]
        lock = self.locks[name] = rl.Lock(self.known("client", message), first)
        lock.t0_ms = now_ms()
        status = rl.INVALID if lock.state == rl.State.INVALID else rl.OK
        for resource in more:
            status = status or lock.add(resource)
        for option, value in options.items():
            status = status or lock.set(option, value)
        return {"status": (status or then(lock)).name, "message": lock.message}

    def acquire(self, message):
        return self.operate(message, lambda lock: lock.acquire(message.get("wait_ms", -2)))

    def extend(self, message):
        return self.operate(message, lambda lock: lock.extend(message.get("ttl_ms", 0)))

    def release(self, message):
        return self.operate(message, lambda lock: lock.release())

    def start(self, message):
        what = OPERATIONS[lines.one_of(message, "what", *OPERATIONS)]
        return self.operate(message, lambda lock: lock.start(what, message.get("arg", 0)))

    def wait(self, message):
        """The reply comes when the operation has ended, see answer_waiting."""
        limit_ms = message.get("limit_ms", -1)
        until = float("inf") if limit_ms < 0 else now_ms() + limit_ms
        self.waiting[message["id"]] = self.known("lock", message), until

    def cancel(self, message):
        return {"status": self.known("lock", message).cancel().name}

    def state(self, message):
        lock = self.known("lock", message)
        return {"status": "OK", "state": STATES.get(lock.state, "FREE"), "token": lock.token}

    def validity(self, message):
        lock, t0_ms = self.known("lock", message), now_ms()
        return {"status": "OK", "t0_ms": t0_ms, "validity_ms": lock.validity_ms}

    def detach(self, message):
        return self.operate(message, lambda lock: lock.detach())

    def status(self, message):
        """A new handle asks, so that a lock in use is left alone."""
        lock = rl.Lock(self.known("client", message), lines.resource(message))
        lock.t0_ms = now_ms()
        status = lock.start(rl.INSPECT)
        while status == rl.OK and (status := lock.wait(-1)) == rl.PENDING:
            status = rl.OK
        reply = dict(outcome(lock, rl.OK if status == rl.BUSY else status), verdict=lock.verdict.name.lower())
        lock.free()
        return reply

    def describe(self, message):
        return {"status": "OK", "describe": self.known("client", message).describe()}

    def fork(self, message):
        commands = lines.commands(message)
        return lines.forked(lambda: [self.answer(command) for command in commands])

    def exit(self, message):
        if lines.one_of(message, "mode", "normal", "hard") == "hard":
            os._exit(9)
        for client in self.clients.values():  # as a C program leaves: the locks that are held go with the client
            client.free_alone()
        sys.exit(0)

    # -- the machinery

    def operate(self, message, call):
        lock = self.known("lock", message)
        lock.t0_ms = now_ms()
        return outcome(lock, call(lock))

    def take(self, line):
        self.number += 1
        message = lines.parse(line, self.number)
        reply = message and self.answer(message)
        if reply is not None:
            send(reply, message.get("id"))

    def answer_waiting(self):
        for number, (lock, until) in list(self.waiting.items()):
            if lock.status != rl.PENDING or now_ms() >= until:
                del self.waiting[number]
                send(outcome(lock, lock.status), number)

    def turn(self, rest):
        """One turn of a program's loop: the part of a line that has come last, None at the end."""
        first = min((until for _, until in self.waiting.values()), default=float("inf"))
        timeout = None if first == float("inf") else max(0, first - now_ms()) / 1000
        by_fd = {client.fd: client for client in self.clients.values()}
        readable, _, _ = select.select([0, *by_fd], [], [], timeout)
        for client in (by_fd[fd] for fd in readable if fd):
            client.process()
            while client.next() is not None:
                pass
        self.answer_waiting()
        if 0 not in readable:
            return rest
        data = os.read(0, 1 << 16)
        *whole, rest = (rest + data).split(b"\n")
        for line in whole:
            self.take(line)
        return rest if data else None

    def run(self):
        rest = b""
        while rest is not None:
            rest = self.turn(rest)
        for client in self.clients.values():
            client.free()


if __name__ == "__main__":
    Driver().run()
