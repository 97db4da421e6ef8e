"""CPython's own tests of threading.Lock and threading.RLock, with locks of a client."""

import itertools
import unittest

import pytest

lock_tests = pytest.importorskip("test.lock_tests", reason="CPython's own tests are not installed")

PRIVATE = "a private method of CPython's locks, for threading.Condition and forks"
OWN_WORDS = "the representation names the resource and not an address"
EXCEPTIONS = {
    ("LockTests", "test_at_fork_reinit"): PRIVATE,
    ("LockTests", "test_different_thread"): "only a hold may be released by another thread: hold.release()",
    ("LockTests", "test_locked_repr"): OWN_WORDS,
    ("LockTests", "test_reacquire"): "the main thread releases what another thread has acquired",
    ("LockTests", "test_repr"): OWN_WORDS,
    ("RLockTests", "test__is_owned"): PRIVATE,
    ("RLockTests", "test_locked_repr"): OWN_WORDS,
    ("RLockTests", "test_recursion_count"): PRIVATE,
    ("RLockTests", "test_release_save_unacquired"): PRIVATE,
    ("RLockTests", "test_repr"): OWN_WORDS,
}
KINDS = {"LockTests": "lock", "RLockTests": "rlock"}


def names():
    for kind in KINDS:
        for name in unittest.TestLoader().getTestCaseNames(getattr(lock_tests, kind)):
            if (kind, name) not in EXCEPTIONS:
                yield kind, name


@pytest.mark.parametrize("kind, name", list(names()))
def test_locks_are_locks_of_threading(client, kind, name):
    numbers = itertools.count()

    class Case(getattr(lock_tests, kind)):
        def locktype(self):
            return getattr(client, KINDS[kind])(f"r{next(numbers)}")

    result = unittest.TestResult()
    Case(name).run(result)
    assert result.wasSuccessful() and not result.skipped, result.errors + result.failures


def test_the_exceptions_are_tests():
    assert {kind for kind, _ in EXCEPTIONS} == set(KINDS)
    assert len(list(names())) >= 26
