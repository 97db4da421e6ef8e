"""The checker against made-up logs with each kind of violation, and without any."""
import json

import pytest

import checker


def hold(party, start, end, resource="r", token=None, shared=False, slot=None):
    return {"kind": "hold", "resource": resource, "token": token or party, "party": party, "from_ms": start,
            "to_ms": end, "shared": shared, "permits": 0 if slot is None else 2, "slot": slot or 0}


def key(at_ms, pttl_ms=800, token="nobody"):
    return {"kind": "key", "node": "n", "key": "r", "token": token, "at_ms": at_ms, "pttl_ms": pttl_ms,
            "limit_ms": 1000, "gone_ms": 1000}


GOOD = [hold("a", 0, 10), hold("b", 10, 20), hold("c", 5, 30, resource="s"), hold("d", 25, 22), hold("d", 29, 30),
        hold("g", 0, 20, resource="t", shared=True), hold("h", 5, 9, resource="t", shared=True),
        hold("i", 15, 30, resource="t", shared=True), hold("j", 31, 40, resource="t"),
        hold("l", 0, 20, resource="u", slot=0), hold("m", 5, 10, resource="u", slot=1),
        hold("n", 10, 30, resource="u", slot=1), hold("o", 21, 30, resource="u"),  # a plain lock is in slot 0
        {"kind": "wait", "party": "a", "what": "acquire", "from_ms": 0, "to_ms": 900, "limit_ms": 1000},
        key(5), key(28, token="d"), key(1030, token="d"),  # d's last hold ends at 30
        {"kind": "told", "party": "a", "token": "t", "ended_ms": 10, "at_ms": 12, "state": "LOST"},
        {"kind": "told", "party": "a", "token": "t", "ended_ms": 10, "at_ms": 9, "state": "HELD"}]
BAD = {
    "two holders": hold("e", 9.5, 9.7),
    "two holders: a and e": hold("e", 1, 2),
    "two holders: c and f": hold("f", 29, 40, resource="s"),
    "two holders: g and k": hold("k", 14, 15, resource="t"),  # h has gone, which came later
    "two holders: j and k": hold("k", 32, 33, resource="t", shared=True),
    "too many holders: l, m, p held u together, of 2 permits": hold("p", 6, 7, resource="u", slot=2),
    "too many holders: n, o, p held u together, of 2 permits": hold("p", 22, 23, resource="u", slot=2),
    "two holders: n and p held u": hold("p", 20.2, 20.4, resource="u", slot=1),
    "two holders: l and p held u": hold("p", 1, 2, resource="u"),
    "wait without end": {"kind": "wait", "party": "a", "what": "acquire", "from_ms": 0, "to_ms": None, "limit_ms": 9},
    "wait too long": {"kind": "wait", "party": "a", "what": "acquire", "from_ms": 0, "to_ms": 1001, "limit_ms": 1000},
    "key that outlives its time: r on n, -1": key(5, pttl_ms=-1),
    "key that outlives its time: r on n, 1001": key(5, pttl_ms=1001),
    "key that outlives its holder: r of d on n after 1001 ms": key(1031, token="d"),
    "key that outlives its holder: r of nobody on n after 1001 ms": key(1006),
    "loss not told": {"kind": "told", "party": "a", "token": "t", "ended_ms": 10, "at_ms": 10.1, "state": "HELD"},
    "validity over-stated": {"kind": "over", "party": "a", "by_ms": 0.5},
    "ended by itself: a with status -11": {"kind": "end", "party": "a", "status": -11},
}


def test_a_good_log_has_no_violation():
    assert checker.check(GOOD) == []


@pytest.mark.parametrize("words", BAD)
def test_each_violation_is_found(words):
    violations = checker.check(GOOD + [BAD[words]])
    assert len(violations) == 1 and violations[0].startswith(words)


def test_a_hold_inside_a_longer_one_hides_nothing():
    assert len(checker.check([hold("a", 0, 100), hold("b", 10, 20), hold("c", 50, 60)])) == 2


@pytest.mark.parametrize("line, words", [("{", "line 2: no record"), ('{"kind": "what"}', "line 2: no record"),
                                         ('{"kind": "over"}', "line 2: by_ms, party is missing")])
def test_a_line_that_is_no_record_is_refused(line, words):
    with pytest.raises(checker.BadLog, match=words):
        checker.read([json.dumps(GOOD[0]), line])
