"""The judge against made-up histories, and the operations that a soak's hold becomes."""
import json

import pytest

from driver import Reply, now_ms
from history import JUDGE, History, Hold, judge


def operation(op, token, call_ms, return_ms, until_ms=None, resource="r", fence=None, shared=False, slot=None):
    fields = {} if until_ms is None else {"until_ms": until_ms}
    if op == "acquire":
        fields.update(fence=fence, shared=shared)
    if slot is not None:
        fields.update(permits=PERMITS, slot=slot)
    return dict(fields, op=op, resource=resource, client="of-" + token, token=token, call_ms=call_ms,
                return_ms=return_ms)


def held(token, from_ms, to_ms, **more):
    """Acquired and released."""
    return [operation("acquire", token, from_ms - 1, from_ms, to_ms + 100, **more),
            operation("release", token, to_ms, to_ms + 1, resource=more.get("resource", "r"))]


PERMITS = 3
GOOD = [
    *held("a", 10, 20),
    *held("elsewhere", 12, 18, resource="s"),
    operation("acquire", "b", 5, 21, 30), operation("hold", "b", 25, 26, 80), operation("lose", "b", 80, 80),
    operation("acquire", "c", 40, 82, 70), operation("lose", "c", 70, 82),  # it waited longer than it is known to hold
    *held("d", 83, 90, fence=7), *held("e", 92, 99, fence=8), *held("no-fence", 101, 103),
    *held("f", 105, 107, fence=9),
    *held("g", 110, 130, shared=True), *held("h", 112, 120, shared=True), *held("i", 125, 140, shared=True),
    *held("j", 142, 150), *held("k", 151, 160, shared=True),
    *held("l", 162, 180, slot=0), *held("m", 164, 172, slot=2), *held("n", 166, 190, slot=1),
    *held("o", 174, 185, slot=2), *held("p", 182, 188),  # a plain lock is in slot 0
]
BAD = {
    "two hold it at once": (held("x", 15, 16), "a x"),
    "one enters before the validity that an extension stated has ended": (held("x", 60, 79), "b x"),
    "a hold that outlives its validity": ([operation("acquire", "x", 200, 201, 300),
                                           operation("release", "x", 300.001, 301)], "x"),
    "a loss that is later than the validity": ([operation("acquire", "x", 200, 201, 300),
                                                operation("lose", "x", 301, 301)], "x"),
    "a holder is told that it holds what it has lost": ([operation("hold", "b", 80.5, 81, 81)], "b"),
    "one enters while another has not left": ([operation("acquire", "x", 200, 201, 300), *held("y", 210, 220)], "x y"),
    "a release of what was never granted": ([operation("release", "x", 200, 201)], "x"),
    "granted while another holds it all the time": ([operation("acquire", "x", 26, 50, 40),
                                                     operation("lose", "x", 40, 50)], "b x"),
    "a fencing token that was granted before": (held("x", 200, 210, fence=9), "f x"),
    "a fencing token that decreases": (held("x", 200, 210, fence=8), "f x"),
    "one holds it alone beside one that shares": (held("x", 121, 124), "g x"),
    "one that shares beside one that holds it alone": (held("x", 144, 146, shared=True), "j x"),
    "one that shares longer than its validity": ([operation("acquire", "x", 114, 115, 116, shared=True),
                                                  operation("release", "x", 117, 118)], "x"),
    "more than there are permits": (held("x", 168, 170, slot=PERMITS), "l m n x"),
    "two in one slot": (held("x", 173.2, 173.4, slot=1), "n x"),
    "a plain lock beside the permit of slot 0": (held("x", 173.2, 173.4), "l x"),
    "a permit of slot 0 beside a plain lock": (held("x", 186.5, 187, slot=0), "p x"),
    "a reader that was told after its release": ([operation("hold", "h", 122, 123, 124)], "h"),
}


@pytest.fixture(autouse=True)
def built():
    if not JUDGE.exists():
        pytest.fail("the judge is required: %s" % JUDGE, pytrace=False)


@pytest.fixture
def judged(tmp_path):
    def run(*lines):
        path = tmp_path / "history.jsonl"
        path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
        return judge(path)

    return run


def test_hand_overs_are_allowed(judged):
    assert judged(*GOOD) == (0, "judge: a lock allows all %d operations" % len(GOOD))


@pytest.mark.parametrize("what", BAD)
def test_what_no_lock_allows_is_refused(judged, what):
    """What is printed are the holds that contradict each other, and no others."""
    planted, offending = BAD[what]
    status, words = judged(*GOOD, *planted)
    assert status == 1 and words.startswith("r: no lock allows these operations:"), words
    assert {line.split()[2] for line in words.splitlines()[1:]} == set(offending.split()), words


@pytest.mark.parametrize("line, words", [
    ("{", "line 2: unexpected EOF"), ("[]", "line 2: json"),
    (dict(GOOD[0], op="free"), 'line 2: op is "free"'), (dict(GOOD[0], token=""), "line 2: resource, client or token"),
    (dict(GOOD[0], call_ms=None), "line 2: call_ms or return_ms"), (dict(GOOD[0], until_ms=None), "line 2: until_ms"),
    (dict(GOOD[0], return_ms=8), "line 2: return_ms is before call_ms"), (dict(GOOD[0], pence=1), "line 2: json"),
])
def test_a_line_that_is_no_operation_is_refused(judged, line, words):
    status, said = judged(GOOD[0], line)
    assert status == 2 and words in said


def test_an_empty_history_is_refused(judged):
    status, said = judged()
    assert status == 2 and "no operations" in said


# -- what a soak writes


@pytest.fixture
def history(tmp_path):
    made = History(tmp_path / "history.jsonl")
    yield made
    made.close()


def hold(history, validity_ms):
    """One that was granted just now."""
    return Hold(history, "php-1", "r", Reply(t0_ms=now_ms(), validity_ms=validity_ms, token="t"))


def written(history):
    history.close()
    return [json.loads(line) for line in open(history.path, encoding="utf-8")]


def test_a_release_ends_a_hold(history):
    one = hold(history, 0)
    one.told(now_ms(), now_ms() + 60000)  # it was extended
    one.release()
    one.close()
    acquire, told, release = written(history)
    assert [acquire["op"], told["op"], release["op"]] == ["acquire", "hold", "release"]
    assert acquire["fence"] is None and acquire["until_ms"] < release["call_ms"] == one.end_ms < told["until_ms"]
    assert judge(history.path)[0] == 0


def test_a_hold_of_several_resources_is_one_of_each(history):
    one = Hold(history, "php-1", ["r", "s"], Reply(t0_ms=now_ms(), validity_ms=60000, token="t", fence=0), shared=True)
    one.release()
    one.close()
    lines = written(history)
    assert [(each["op"], each["resource"]) for each in lines] == [
        ("acquire", "r"), ("acquire", "s"), ("release", "r"), ("release", "s")]
    assert lines[0]["shared"] is True and lines[0]["fence"] is None
    assert judge(history.path)[0] == 0


@pytest.mark.parametrize("released", [True, False])
def test_a_hold_is_cut_at_its_validity(history, released):
    one = hold(history, 0)  # it is over when the reply has come
    if released:
        one.release()
    one.close()
    acquire, loss = written(history)
    assert (loss["op"], loss["call_ms"], loss["return_ms"]) == ("lose", acquire["until_ms"], acquire["return_ms"])
    assert judge(history.path)[0] == 0


def test_the_hold_of_a_process_that_was_killed_ends(history):
    one = hold(history, 60000)
    one.close()
    acquire, loss = written(history)
    assert loss["op"] == "lose" and acquire["return_ms"] <= loss["call_ms"] < acquire["until_ms"]


def test_a_loss_is_final(history):
    one = hold(history, 60000)
    one.lose(now_ms())
    end_ms = one.end_ms
    one.told(now_ms(), now_ms() + 60000)
    one.release()
    one.close()
    assert one.end_ms == end_ms and [each["op"] for each in written(history)] == ["acquire", "lose", "hold"]
    assert judge(history.path)[0] == 1
