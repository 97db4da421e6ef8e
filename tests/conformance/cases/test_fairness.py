"""Who waits for whom: 32 readers that come again and again let two writers through."""
import collections
import itertools
import time

import faces
from driver import Waiting
from steps import stand_in_line

TTL_MS = 20000
READERS, TURNS_MAX = 32, 12
READING = {"shared": True, "strict_release": True}  # home has then told whether others wait before they come again


def served(waiting):
    """The locks of those that wait no more; they leave the list."""
    ended = [one for one in waiting if not one.pending]
    for one in ended:
        assert one.result() == "OK"
        waiting.remove(one)
    return [one.lock for one in ended]


def assert_writers_get_through(readers, writers, nodes):
    """Readers that leave and come again do not overtake a writer that has come before, again and again. The turn that
    they had counts as the first; on a busy machine the home node now and then answers too late to stop one."""
    for reader in readers:
        assert reader.acquire(wait_ms=20000) == "OK"
    writing = [stand_in_line(writer, nodes, number) for number, writer in enumerate(writers, 1)]
    turns, coming = collections.Counter(), []
    while writing:
        for reader in readers:
            turns[reader] += 1
            assert turns[reader] <= TURNS_MAX, turns
            assert reader.release() == "OK"
            coming.append(Waiting(reader, -1))
        readers = served(coming)
        for writer in served(writing):
            assert writer.release() == "OK"
        time.sleep(0.001)
    assert [waiting.result() for waiting in coming] == ["OK"] * len(coming)
    assert len(turns) == READERS


def test_writers_get_through_between_many_readers(make, parties, nodes):
    readers = [parties("c", ttl_ms=TTL_MS) for _ in range(4)]
    locks = [party.lock(**READING) for party in readers * (READERS // 4)]
    assert_writers_get_through(locks, [make(ttl_ms=TTL_MS).lock() for _ in range(2)], nodes)


def test_writers_get_through_between_readers_of_all_faces(parties, nodes):
    """Of the faces that can wait for several locks at once more in one process."""
    readers = [parties(face, ttl_ms=TTL_MS) for face in faces.FACES]
    able = [party for party in readers if "start" in party.can and party.hello.cancel == "command"]
    more = itertools.islice(itertools.cycle(able), READERS - len(readers))
    locks = [party.lock(**(READING if party.face != "cli" else {"shared": True})) for party in [*readers, *more]]
    assert_writers_get_through(locks, [parties(face, ttl_ms=TTL_MS).lock() for face in ("python", "c")], nodes)
