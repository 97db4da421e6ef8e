"""Two, three and seventeen want the same lock: one at a time has it."""
import itertools
import threading

import pytest

import faces
from driver import now_ms
from steps import BEFORE_LAPSE_S


def contend(parties, rounds):
    """Everybody takes and gives back; the holds as (from, to) of whoever held."""
    holds, problems = [], []

    def work(lock):
        for _ in range(rounds):
            took = lock.acquire(wait_ms=60000)
            start = now_ms()
            if took != "OK":
                problems.append(took)
                return
            end = now_ms()
            holds.append((start, end, lock.token))
            gave = lock.release()
            if gave != "OK":
                problems.append(gave)

    threads = [threading.Thread(target=work, args=(party.lock(retry_delay_ms=50),)) for party in parties]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems, problems
    return sorted(holds)


def assert_one_at_a_time(holds):
    for (_, end, one), (start, _, other) in itertools.pairwise(holds):
        assert end <= start, "%s and %s held it together for %.3f ms" % (one, other, end - start)


@pytest.mark.parametrize("count, rounds", [(2, 5), (3, 4), (17, 1)])
def test_contenders_hold_the_lock_one_at_a_time(make, nodes, count, rounds):
    holds = contend([make() for _ in range(count)], rounds)
    assert len(holds) == count * rounds
    assert_one_at_a_time(holds)
    nodes.no_keys(BEFORE_LAPSE_S)


def test_contenders_of_all_faces_hold_it_one_at_a_time(parties, nodes):
    wanted = itertools.islice(itertools.cycle(faces.FACES), 17)
    holds = contend([parties(face) for face in wanted], 2)
    assert len(holds) == 34
    assert_one_at_a_time(holds)
    nodes.no_keys(BEFORE_LAPSE_S)
