"""Cancel as a signal handler calls it."""
import os
import signal

from helpers import Call, occupy
from rl import CANCELLED, PENDING
from testing import eventually


def test_cancel_in_a_signal_handler_ends_the_wait(nodes, client):
    occupy(nodes)
    lock = client.lock()
    waiting = Call(lock.acquire, -1)
    eventually(lambda: lock.status == PENDING)
    old = signal.signal(signal.SIGUSR1, lambda *_: lock.cancel())
    try:
        os.kill(os.getpid(), signal.SIGUSR1)
        assert waiting.join() == CANCELLED
    finally:
        signal.signal(signal.SIGUSR1, old)
