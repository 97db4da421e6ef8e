"""Two threads in any order, also where an interpreter would hardly ever switch between them."""

import itertools
import sys
from concurrent.futures import ThreadPoolExecutor, wait

NO_WAIT_S = 0.1  # for what may have to wait for the call itself


def came_to(call, *arguments):
    try:
        return call(*arguments)
    except Exception as failure:
        return failure


def at_each_step(function, begin, call, meanwhile):
    """What call(state) and meanwhile(state) came to when the latter ran in another thread before the first instruction
    of a function, then before the second, and so on. state: what begin() returns, anew each time."""
    for step in itertools.count(1):
        left, state, others = [step], begin(), []

        def trace(frame, event, _, left=left, state=state, others=others):
            if frame.f_code is not function.__code__:
                return None
            frame.f_trace_opcodes = True
            left[0] -= event == "opcode"
            if event == "opcode" and left[0] == 0:
                others.append(pool.submit(came_to, meanwhile, state))
                wait(others, NO_WAIT_S)
            return trace

        with ThreadPoolExecutor(1) as pool:
            sys.settrace(trace)
            try:
                result = came_to(call, state)
            finally:
                sys.settrace(None)
        if not others:
            assert step > 5
            return
        yield result, others[0].result()
