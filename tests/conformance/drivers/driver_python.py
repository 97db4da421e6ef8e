"""The synchronous surface of the Python package as a face of the conformance suite."""
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import lines
import package
from lines import Fields, facts, failure, now_ms, send
from package import CAN, BodyFailed, Candidate, waiting

import libredlock


class Driver(package.Driver):
    Client = libredlock.Client

    def __init__(self):
        super().__init__()
        self.threads = {}

    # -- commands

    def hello(self, message):
        return {"face": "python", "version": libredlock.__version__, "pid": os.getpid(), "can": CAN,
                "cancel": "signal"}

    def acquire(self, message):
        return self.in_its_thread(message, lambda lock: self.operate(lock, "acquire", message.get("wait_ms", -2)))

    def extend(self, message):
        return self.in_its_thread(message, lambda lock: self.operate(lock, "extend", message.get("ttl_ms", 0)))

    def release(self, message):
        return self.in_its_thread(message, lambda lock: self.operate(lock, "release", 0))

    def state(self, message):
        return self.in_its_thread(message, lines.state)

    def validity(self, message):
        return self.in_its_thread(message, lines.validity)

    def candidate(self, election):
        terms = iter(election)
        return Candidate(election, lambda **_: next(terms))

    def close(self, message):
        self.known("client", message).close()
        return {"status": "OK"}

    def start(self, message):
        """A thread is how a program does something else meanwhile."""
        lock, done = self.known("lock", message), {}
        what, arg = lines.one_of(message, "what", "acquire", "extend", "release"), message.get("arg", 0)
        thread = threading.Thread(target=lambda: done.update(self.operate(lock, what, arg)), daemon=True)
        self.started[message["lock"]] = thread, done
        thread.start()
        return {"status": "OK"}

    def wait(self, message):
        thread, done = lines.known("lock", self.started, message)
        limit_ms = message.get("limit_ms", -1)

        def watch():
            thread.join(None if limit_ms < 0 else limit_ms / 1000)
            send({"status": "PENDING"} if thread.is_alive() else done, message["id"])

        threading.Thread(target=watch, daemon=True).start()
        return None

    def status(self, message):
        return lines.verdict(self.known("client", message).status(lines.resource(message)))

    def fork(self, message):
        commands = lines.commands(message)
        return lines.forked(lambda: [self.answer(command) for command in commands])

    def body(self, message):
        """The `with` block: its body is a loop over the messages that come until `leave`."""
        lock = self.known("lock", message)
        leave = Fields(id=message["id"])
        try:
            with lock.block() as lock.hold:
                send(dict(facts(lock, now_ms()), status="OK"), message["id"])
                leave = self.loop("leave") or leave
                if leave.get("fail"):
                    raise BodyFailed("as it was told")
            reply = {"status": "OK"}
        except BodyFailed:
            reply = {"status": "OK", "raised": "BodyFailed"}
        except libredlock.RedlockError as error:
            reply = failure(error)
        send(reply, leave["id"])

    def again(self, message):
        """The block once more; its body releases the lock before its end."""
        with self.known("lock", message).block() as hold:
            hold.release()
        return {"status": "OK"}

    def exit(self, message):
        if lines.one_of(message, "mode", "normal", "exception", "hard") == "hard":
            os._exit(9)
        if message["mode"] == "exception":
            raise RuntimeError("the program fails, as it was told")
        sys.exit(0)

    # -- the machinery

    def in_its_thread(self, message, work):
        """That of a caller, who then answers; others have the main thread."""
        lock = self.known("lock", message)
        if lock not in self.callers:
            return work(lock)
        thread = self.threads.setdefault(lock, ThreadPoolExecutor(1))
        thread.submit(lambda: send(work(lock), message["id"]))
        return None

    def operate(self, lock, what, arg):
        t0_ms, status = now_ms(), "OK"
        try:
            if what == "acquire":
                status = lock.take(lock.lock.acquire(**waiting(arg)))
            elif what == "extend":
                lock.to_act_on().extend(arg / 1000 if arg else None)
            else:
                lock.to_act_on().release()
        except (libredlock.RedlockError, ValueError) as error:
            lock.failed(error)
            return dict(facts(lock, t0_ms), **failure(error))
        except KeyboardInterrupt:
            return dict(facts(lock, t0_ms), status="CANCELLED", error="KeyboardInterrupt")
        finally:
            if what == "release":
                lock.let_go()
        return dict(facts(lock, t0_ms), status=status)

    def loop(self, until=None):
        while True:
            line = sys.stdin.readline()
            if not line:
                return None
            self.number += 1
            message = lines.parse(line, self.number)
            if message is None:
                continue
            if until is not None and message.get("do") == until:
                return message
            reply = self.answer(message)
            if reply is not None:
                send(reply, message.get("id"))


def quiet_interrupt(number, frame):
    """Ctrl-C ends what waits for a lock and nothing else."""
    while frame is not None:
        if frame.f_code is Driver.operate.__code__:
            raise KeyboardInterrupt
        frame = frame.f_back


if __name__ == "__main__":
    signal.signal(signal.SIGINT, quiet_interrupt)
    Driver().loop()
