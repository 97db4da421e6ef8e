"""Signals, forks and leaving, each in a program of its own."""

import textwrap

import pytest

from patience import GENEROUS_TIMEOUTS


def program(source):
    return f"import libredlock\nGENEROUS_TIMEOUTS = {GENEROUS_TIMEOUTS}\n" + textwrap.dedent(source)


def test_ctrl_c_ends_a_wait_and_leaves_no_key(script, client, nodes):
    held = client.lock("r", renew=True)
    held.acquire()
    waiting = script(
        program(
            """
            client = libredlock.Client(**GENEROUS_TIMEOUTS)
            lock = client.lock("r")
            client.status("r")
            try:
                print("waiting")
                lock.acquire()
            except KeyboardInterrupt:
                print("interrupted", lock.locked(), lock.owned())
            print(lock.acquire(blocking=False))
            """
        )
    )
    assert waiting.line() == "waiting"
    waiting.interrupt()
    assert waiting.line() == "interrupted False False"
    assert waiting.line() == "False"
    assert waiting.end() == (0, "", "")
    held.release()
    nodes.no_keys()


def test_a_signal_handler_runs_while_the_main_thread_waits(script, client):
    held = client.lock("r", renew=True)
    held.acquire()
    waiting = script(
        program(
            """
            import signal
            client = libredlock.Client(**GENEROUS_TIMEOUTS)
            signal.signal(signal.SIGINT, lambda *_: print("handled"))
            print("waiting")
            with client.lock("r"):
                print("got it")
            """
        )
    )
    assert waiting.line() == "waiting"
    waiting.interrupt()
    assert waiting.line() == "handled"
    held.release()
    assert waiting.end() == (0, "got it", "")


def test_ctrl_c_leaves_the_queue_of_a_shared_lock(script, nodes):
    waiting = script(
        program(
            """
            import threading
            client = libredlock.Client(**GENEROUS_TIMEOUTS)
            lock = client.lock("r")
            lock.acquire()
            try:
                print("waiting")
                lock.acquire()
            except KeyboardInterrupt:
                print("interrupted", client.describe()["waiting"])
            lock.release()
            print(bool(lock.acquire(timeout=30)))
            lock.release()
            """
        )
    )
    assert waiting.line() == "waiting"
    waiting.interrupt()
    assert waiting.end() == (0, "interrupted 0\nTrue", "")
    nodes.no_keys()


@pytest.mark.parametrize("form", ["lock.acquire(); lock.release()", "with lock: pass"])
def test_an_exception_at_any_instruction_leaves_no_key(script, nodes, form):
    """What a signal handler raises can come between any two instructions of the package: a trace function does it.

    Afterwards the lock is free, or held as one that locked() tells of and release() ends; nothing is in between. Only
    a return that has begun is not interrupted, nor what takes an interrupted call back.
    """
    source = program(
        """
        import dis, sys
        client = libredlock.Client(**GENEROUS_TIMEOUTS)
        folder = libredlock.__path__[0]
        class Interrupt(BaseException): pass
        TAKE_BACK = ("_abandon", "_abandon_release", "__del__")
        left = 0
        def trace(frame, event, arg):
            global left
            if not frame.f_code.co_filename.startswith(folder) or frame.f_code.co_name in TAKE_BACK:
                return None
            frame.f_trace_opcodes = True
            if event == "opcode" and name_of(frame) != "RETURN_VALUE" and not is_taking_back(frame):
                left -= 1
                if left == 0:
                    raise Interrupt
            return trace
        def name_of(frame):
            return dis.opname[frame.f_code.co_code[frame.f_lasti]]
        def is_taking_back(frame):
            while frame is not None and frame.f_code.co_name not in TAKE_BACK:
                frame = frame.f_back
            return frame is not None
        lock = client.lock("r", ttl=30, wait=20)  # shorter than what a key that was left would live
        interrupted = kept = 0
        for _ in range(2):  # the first time it also prepares the process
            instruction, done = 0, False
            while not done:
                instruction += 1
                left = instruction
                sys.settrace(trace)
                try:
                    FORM
                    done = True
                except Interrupt:
                    interrupted += 1
                finally:
                    sys.settrace(None)
                if lock.locked():
                    kept += 1
                    lock.check()
                    lock.release()
                if lock.locked() or lock.owned():
                    print("stuck after", instruction, lock)
                    break
        print(interrupted > 100, 0 < kept < 500)
        """
    ).replace("FORM", form)
    assert script(source).end(300) == (0, "True True", "")
    nodes.no_keys()


def test_interrupts_at_random_leave_no_lock_of_a_with_block(script, nodes):
    """No reference to the Lock is kept, so that an interruption at the very end drops it."""
    source = program(
        """
        import random, signal
        class Interrupt(BaseException): pass
        def interrupt(*_):
            if is_inside: raise Interrupt
        random.seed(5)
        client = libredlock.Client(**GENEROUS_TIMEOUTS)
        client.status("connected")
        is_inside, interrupted = False, 0
        signal.signal(signal.SIGALRM, interrupt)
        for number in range(3000):
            try:
                is_inside = True
                signal.setitimer(signal.ITIMER_REAL, random.uniform(2e-5, 4e-4))
                with client.lock(f"r{number}", ttl=30, wait=20):
                    pass
                is_inside = False
            except Interrupt:
                is_inside = False
                interrupted += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(interrupted > 30)
        for number in range(3000):
            while client.status(f"r{number}").verdict != "free":
                pass
        print("free")
        """
    )
    status, out, _ = script(source).end(300)
    assert (status, out) == (0, "True\nfree")
    nodes.no_keys()


def test_an_exception_while_a_lock_is_collected_leaves_no_key(script, nodes):
    """A signal handler may raise in __del__, too, where Python ignores it."""
    source = program(
        """
        import sys, threading
        def trace(frame, event, arg):
            if frame.f_code.co_name == "__del__": raise KeyboardInterrupt
        threading.settrace(trace)  # the library's thread may have the last reference
        client = libredlock.Client(**GENEROUS_TIMEOUTS)
        lock = client.lock("r", ttl=30, wait=20)
        lock.acquire()
        sys.settrace(trace)
        del lock
        sys.settrace(None)
        print(bool(client.lock("r").acquire(timeout=20)))
        """
    )
    status, out, err = script(source).end()
    assert (status, out) == (0, "True") and "Exception ignored" in err


def test_an_exception_while_a_client_is_collected_frees_it(script, nodes):
    source = program(
        """
        import os, sys, threading
        from libredlock.testing import eventually
        def trace(frame, event, arg):
            if frame.f_code.co_name == "__del__": raise KeyboardInterrupt
        threading.settrace(trace)  # the library's thread may have the last reference
        def descriptors():
            return len(os.listdir("/proc/self/fd"))
        def used():
            client = libredlock.Client(**GENEROUS_TIMEOUTS)
            client.status("connected")
            return client
        first, second = used(), used()
        second.close()
        del second
        before = descriptors()
        third = used()
        sys.settrace(trace)
        del third
        sys.settrace(None)
        eventually(lambda: descriptors() <= before)
        print("freed")
        """
    )
    status, out, err = script(source).end()
    assert (status, out) == (0, "freed") and "Exception ignored" in err


def test_held_locks_are_released_at_exit(script, nodes):
    for leave in ("", "raise SystemExit(0)"):
        source = f"client = libredlock.Client(**GENEROUS_TIMEOUTS)\nlock = client.lock('r')\nlock.acquire()\n{leave}"
        assert script(program(source)).end() == (0, "", "")
        nodes.no_keys()


def test_generators_that_are_left_over_end_in_silence(script, nodes):
    source = """
        client = libredlock.Client(**GENEROUS_TIMEOUTS)
        @client.with_lock("r")
        def held():
            yield
        left = held()
        next(left)
    """
    in_a_loop = """
        import asyncio
        async def main():
            global client, left
            client = libredlock.aio.Client(**GENEROUS_TIMEOUTS)
            @client.with_lock("r")
            async def held():
                yield
            left = held()
            await left.__anext__()
        asyncio.run(main())
    """
    outlives_the_package = source.replace("left = ", "string.left = ").replace("(left)", "(string.left)")
    in_memory = outlives_the_package.replace("Client(**GENEROUS_TIMEOUTS)", "testing.MemoryClient()")
    for one in source, in_a_loop, outlives_the_package, in_memory:
        assert script("import string\n" + program(one)).end() == (0, "", "")
        nodes.no_keys()


def test_exit_does_not_hang_on_a_daemon_thread_that_waits(script, client, nodes):
    held = client.lock("r", renew=True)
    held.acquire()
    source = program(
        """
        import threading, time
        client = libredlock.Client(**GENEROUS_TIMEOUTS)
        thread = threading.Thread(target=lambda: client.lock("r").acquire(), daemon=True)
        thread.start()
        time.sleep(0.1)
        """
    )
    assert script(source).end() == (0, "", "")
    held.release()
    nodes.no_keys()


def test_exit_does_not_hang_on_nodes_that_do(script, nodes):
    source = """
        import time
        client = libredlock.Client(**dict(GENEROUS_TIMEOUTS, exit_drain=0.1))
        lock = client.lock("r")
        lock.acquire()
        try:
            print("held")
            time.sleep(60)
        except KeyboardInterrupt:
            pass
        """
    holder = script(program(source))
    assert holder.line() == "held"
    for node in nodes:
        node.stop()
    holder.interrupt()
    assert holder.end() == (0, "", "")


def test_detached_locks_survive_the_exit(script, nodes, client):
    status, token, _ = script(
        program(
            """
            client = libredlock.Client(**GENEROUS_TIMEOUTS)
            lock = client.lock("r")
            lock.acquire()
            client.status("r")  # asks every node behind the requests of acquire
            print(lock.detach())
            """
        )
    ).end()
    assert status == 0 and client.status("r").token == token
    client.adopt("r", token).release()
    nodes.no_keys()


FORK = """
import os, sys
client = libredlock.Client(**GENEROUS_TIMEOUTS)
lock = client.lock("r", ttl=30)
lock.acquire()
pid = os.fork()
if pid == 0:
    try:
        assert not lock.owned() and not lock.locked() and lock.lost
        for call in (lock.release, lock.extend, lock.check, lock.detach):
            try:
                call()
            except libredlock.Forked as forked:
                assert forked.status is libredlock.Status.FORKED
            else:
                raise AssertionError(call)
        assert lock.acquire(blocking=False) is False
        own = client.lock("child's own")
        with own:
            assert own.owned()
        own.acquire()
    except BaseException:
        import traceback
        traceback.print_exc()
        os._exit(1)
    LEAVE
_, status = os.waitpid(pid, 0)
assert status == 0, status
lock.check()
assert client.status("r").token == lock.token
print(client.status("child's own").verdict)
lock.release()
pid = os.fork()
if pid == 0:
    with lock:
        os._exit(0 if lock.owned() else 1)
assert os.waitpid(pid, 0)[1] == 0
"""


@pytest.mark.parametrize("leave, verdict", [("os._exit(0)", "held"), ("sys.exit(0)", "free")])
def test_a_forked_child_holds_nothing_of_its_parent(script, nodes, leave, verdict):
    status, out, err = script(program(FORK.replace("LEAVE", leave))).end()
    assert (status, out, err) == (0, verdict, "")


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing_children_release_what_they_hold(script, nodes, tmp_path, method):
    source = program(
        f"""
        import multiprocessing, sys
        sys.path.insert(0, {str(tmp_path)!r})
        import job
        context = multiprocessing.get_context({method!r})
        child = context.Process(target=job.hold)
        child.start()
        child.join()
        print(child.exitcode, job.client.status("r").verdict)
        """
    )
    (tmp_path / "job.py").write_text(
        program(
            """
            client = libredlock.Client(**GENEROUS_TIMEOUTS)
            lock = client.lock("r", ttl=20)
            def hold():
                lock.acquire()
                lock.check()
            """
        )
    )
    assert script(source).end() == (0, "0 free", "")
    nodes.no_keys()


def test_workers_of_a_pre_fork_server_share_a_lock(script, nodes):
    source = program(
        """
        import os
        client = libredlock.Client(**GENEROUS_TIMEOUTS)
        with client.lock("start"):
            pass
        workers = []
        for number in range(4):
            pid = os.fork()
            if pid == 0:
                for _ in range(20):
                    with client.lock("shared"):
                        pass
                client.close()
                os._exit(0)
            workers.append(pid)
        print([os.waitpid(pid, 0)[1] for pid in workers])
        with client.lock("shared"):
            print("parent too")
        """
    )
    assert script(source).end() == (0, "[0, 0, 0, 0]\nparent too", "")
    nodes.no_keys()


def test_opening_a_client_starts_no_thread(script, nodes):
    """CPython 3.12 warns if a process with several threads forks."""
    source = program(
        """
        import os
        client = libredlock.Client(**GENEROUS_TIMEOUTS)
        print(os.listdir("/proc/self/task") == [str(os.getpid())])
        """
    )
    assert script(source).end() == (0, "True", "")


def test_the_last_close_ends_the_package_s_thread(script, nodes):
    """An interpreter inside another one cannot be ended while it has another thread."""
    source = program(
        """
        import contextlib, threading
        from libredlock import _notify
        _notify.JOIN_S = 60
        called = threading.Event()
        def on_lost(hold):
            called.set()
            while not client.closed:
                pass
            sum(range(5_000_000))
        with libredlock.Client(**GENEROUS_TIMEOUTS) as client:
            hold = client.lock("r", on_lost=on_lost).take()
            client.release("r", force=True)
            with contextlib.suppress(libredlock.Lost):
                hold.extend()
            called.wait()
        print(threading.active_count())
        """
    )
    assert script(source).end()[:2] == (0, "1")
    nodes.no_keys()


@pytest.mark.parametrize("has_begun", [True, False])
def test_a_cut_off_start_leaves_one_thread(script, has_begun):
    """What a signal handler raises leaves start() before the thread runs, or after that."""
    source = program(
        """
        import threading
        class Interrupt(BaseException): pass
        start, late = threading.Thread.start, []
        def cut_off(thread):
            threading.Thread.start = start
            start(thread) if HAS_BEGUN else late.append(thread)
            raise Interrupt
        client = libredlock.Client(**GENEROUS_TIMEOUTS)
        threading.Thread.start = cut_off
        try:
            client.lock("r").acquire()
        except Interrupt:
            client.lock("r").acquire(timeout=30)
        for thread in late:
            start(thread)
            thread.join()
        print([thread.name for thread in threading.enumerate()])
        """
    )
    assert script(source.replace("HAS_BEGUN", str(has_begun))).end() == (0, "['MainThread', 'libredlock']", "")


def test_the_first_lock_may_be_that_of_an_atexit_handler(script, nodes):
    """Python 3.12 starts no thread there: RuntimeError, as join() gives it."""
    source = program(
        """
        import atexit
        def clean_up():
            thread = libredlock._notify.threading.Thread
            thread.start = thread.join
            with client.lock("r") as hold:
                print(hold.owned())
        client = libredlock.Client(**GENEROUS_TIMEOUTS)
        atexit.register(clean_up)
        """
    )
    assert script(source).end() == (0, "True", "")
    nodes.no_keys()


def test_a_child_forked_while_threads_wait_takes_locks(script, nodes):
    source = program(
        """
        import os, threading
        client = libredlock.Client(**GENEROUS_TIMEOUTS)
        lock = client.lock("r")
        lock.acquire()
        threads = [threading.Thread(target=lambda: (lock.acquire(), lock.release())) for _ in range(4)]
        for thread in threads:
            thread.start()
        pid = os.fork()
        if pid == 0:
            client.lock("other").acquire(timeout=30)
            client.close()
            os._exit(0)
        print(os.waitpid(pid, 0)[1])
        lock.release()
        for thread in threads:
            thread.join()
        """
    )
    assert script(source).end() == (0, "0", "")
    nodes.no_keys()


def test_the_interpreter_s_lock_is_free_while_a_thread_waits(client, other):
    import threading

    held = other.lock("r")
    held.acquire()
    waiting = threading.Thread(target=lambda: client.lock("r").acquire(timeout=20), daemon=True)
    waiting.start()
    for _ in range(1_000_000):
        pass
    assert waiting.is_alive()
    held.release()
    waiting.join(30)
    assert not waiting.is_alive()
