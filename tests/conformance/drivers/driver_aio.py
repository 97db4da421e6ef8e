"""The asyncio surface of the Python package as a face of the conformance suite: every message is a task."""
import asyncio
import inspect
import os
import sys

import lines
import package
from lines import Malformed, facts, failure, now_ms, send
from package import CAN, BodyFailed, Candidate, waiting

import libredlock
import libredlock.aio


class Driver(package.Driver):
    Client = libredlock.aio.Client

    def __init__(self):
        super().__init__()
        self.inside = {}
        self.owners = {}
        self.tasks = set()
        self.end = None

    # -- commands

    async def hello(self, message):
        return {"face": "aio", "version": libredlock.__version__, "pid": os.getpid(), "can": CAN, "cancel": "command"}

    async def acquire(self, message):
        return await self.operate(message, "acquire", message.get("wait_ms", -2))

    async def extend(self, message):
        return await self.operate(message, "extend", message.get("ttl_ms", 0))

    async def release(self, message):
        return await self.operate(message, "release", 0)

    async def state(self, message):
        return await self.by_its_owner(message, self.told, lines.state)

    async def validity(self, message):
        return await self.by_its_owner(message, self.told, lines.validity)

    def candidate(self, election):
        terms = election.__aiter__()
        return Candidate(election, lambda **_: terms.__anext__())

    async def close(self, message):
        await self.known("client", message).close()
        return {"status": "OK"}

    async def start(self, message):
        what = lines.one_of(message, "what", "acquire", "extend", "release")
        work = self.operate(message, what, message.get("arg", 0))
        self.started[message["lock"]] = asyncio.ensure_future(work)
        return {"status": "OK"}

    async def wait(self, message):
        limit_ms = message.get("limit_ms", -1)
        task = lines.known("lock", self.started, message)
        await asyncio.wait([task], timeout=None if limit_ms < 0 else limit_ms / 1000)
        return task.result() if task.done() else {"status": "PENDING"}

    async def cancel(self, message):
        lines.known("lock", self.started, message).cancel()
        return {"status": "OK"}

    async def status(self, message):
        return lines.verdict(await self.known("client", message).status(lines.resource(message)))

    async def fork(self, message):
        """The child of a process that runs a loop starts one of its own."""
        commands = lines.commands(message)

        async def work():
            return [await self.answer(command) for command in commands]

        return lines.forked(lambda: asyncio.run(work()))

    async def body(self, message):
        """The `async with` block: its body waits for `leave`."""
        name, lock = message["lock"], self.known("lock", message)
        inside = self.inside[name] = asyncio.Queue()
        reply = {"status": "OK"}
        try:
            async with lock.block() as lock.hold:
                send(dict(facts(lock, now_ms()), status="OK"), message["id"])
                while (message := await inside.get())["do"] == "again":
                    send(await self.release_early(lock), message["id"])
                if message.get("fail"):
                    raise BodyFailed("as it was told")
        except BodyFailed:
            reply = {"status": "OK", "raised": "BodyFailed"}
        except libredlock.RedlockError as error:
            reply = failure(error)
        del self.inside[name]
        send(reply, message["id"])

    async def leave(self, message):
        self.inside[message["lock"]].put_nowait(message)

    async def again(self, message):
        """By the task of the body, if there is one."""
        if message["lock"] in self.inside:
            return await self.leave(message)
        return await self.by_its_owner(message, self.release_early)

    async def release_early(self, lock):
        """The block once more; its body releases the lock before its end."""
        try:
            async with lock.block() as hold:
                await hold.release()
            return {"status": "OK"}
        except libredlock.RedlockError as error:
            return failure(error)

    async def exit(self, message):
        if lines.one_of(message, "mode", "normal", "exception", "hard") == "hard":
            os._exit(9)
        if message["mode"] == "exception":
            self.end.set_exception(RuntimeError("the program fails, as it was told"))
        else:
            self.end.set_result(None)

    # -- the machinery

    async def operate(self, message, what, arg):
        return await self.by_its_owner(message, self.perform, what, arg)

    async def told(self, lock, what):
        return what(lock)

    async def by_its_owner(self, message, work, *arguments):
        """Messages are tasks of their own, and only one task may acquire a lock again. A caller is a task, too."""
        lock = self.known("lock", message)
        if lock not in self.callers and not isinstance(lock.lock, libredlock.aio.RLock):
            return await work(lock, *arguments)
        if lock not in self.owners:
            self.owners[lock] = asyncio.Queue()
            self.tasks.add(asyncio.ensure_future(self.own(self.owners[lock])))
        done = asyncio.get_running_loop().create_future()
        self.owners[lock].put_nowait((work(lock, *arguments), done))
        return await done

    async def own(self, queue):
        while True:
            work, done = await queue.get()
            done.set_result(await work)

    async def perform(self, lock, what, arg):
        t0_ms, status = now_ms(), "OK"
        try:
            if what == "acquire":
                status = lock.take(await lock.lock.acquire(**waiting(arg)))
            elif what == "extend":
                await lock.to_act_on().extend(arg / 1000 if arg else None)
            else:
                await lock.to_act_on().release()
        except (libredlock.RedlockError, ValueError) as error:
            lock.failed(error)
            return dict(facts(lock, t0_ms), **failure(error))
        except asyncio.CancelledError:
            return dict(facts(lock, t0_ms), status="CANCELLED", error="CancelledError")
        finally:
            if what == "release":
                lock.let_go()
        return dict(facts(lock, t0_ms), status=status)

    async def answer(self, message):
        try:
            reply = self.command(message)(message)
            return await reply if inspect.isawaitable(reply) else reply
        except (Malformed, *self.FAILURES) as error:
            return self.problem(message, error)

    async def reply(self, message):
        reply = await self.answer(message)
        if reply is not None:
            send(reply, message.get("id"))

    async def read(self, reader):
        while line := await reader.readline():
            self.number += 1
            message = lines.parse(line, self.number)
            if message is not None:
                task = asyncio.ensure_future(self.reply(message))
                self.tasks.add(task)
                task.add_done_callback(self.tasks.discard)
        if not self.end.done():
            self.end.set_result(None)

    async def main(self):
        loop = asyncio.get_running_loop()
        self.end = loop.create_future()
        reader = asyncio.StreamReader(limit=2**26)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        reading = asyncio.ensure_future(self.read(reader))
        try:
            await self.end
        finally:
            reading.cancel()


if __name__ == "__main__":
    asyncio.run(Driver().main())
