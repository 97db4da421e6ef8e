"""The soak's checker on real nodes: a broken client is found, and so are nodes that restart without their data."""
import collections

import pytest

import faces
import soak
from checker import check
from driver import Party
from history import History, Hold
from testing import eventually

BROKEN = faces.ROOT / "build/testbuild"  # its library has the switch that makes one vote enough
QUORUM_OF_ONE = "1"
LONG_MS = 30000  # the first hold lasts while nodes are changed or restarted


@pytest.fixture
def history(tmp_path):
    made = History(tmp_path / "history.jsonl")
    yield made
    made.close()


def two_holds(one, other, between, history):
    """Both acquire and keep what they got: what the checker and the judge say of what each of them was told."""
    warm = one.lock("warm")  # connected to all nodes, so all of them are asked
    assert warm.acquire() == "OK" and warm.release() == "OK"
    first = one.driver.call("acquire", lock=one.lock().name, wait_ms=0)
    assert first == "OK"
    holds = {"one": Hold(history, "one", "r", first)}
    between()
    tries = (other.driver.call("acquire", lock=other.lock().name, wait_ms=0) for _ in range(20))
    second = next((status for status in tries if status == "OK"), None)  # a broken client may be refused first, too
    if second:
        holds["other"] = Hold(history, "other", "r", second)
    for hold in holds.values():
        hold.release()
    for hold in holds.values():
        hold.close()
    history.close()
    log = [{"kind": "hold", "resource": "r", "token": party, "party": party, "from_ms": hold.from_ms,
            "to_ms": hold.end_ms} for party, hold in holds.items()]
    return check(log), soak.judged(history.path)


@pytest.fixture
def contenders(nodes):
    """Two parties of the test build; the second one keeps the rule or breaks it."""
    if not (BROKEN / "libredlock.so").exists():
        pytest.fail("the test build is required: %s" % BROKEN, pytrace=False)
    made = []

    def make(rule):
        for broken in ("0", rule):
            made.append(Party("c", nodes, environment=faces.environment(BROKEN, REDLOCK_TEST_MUTANT=broken),
                              retry_count=0, ttl_ms=LONG_MS, node_timeout_ms=1000))
        return made

    yield make
    for party in made:
        party.close()


@pytest.mark.parametrize("rule, violations", [(QUORUM_OF_ONE, 1), ("0", 0)], ids=["quorum of one", "sound"])
def test_a_client_content_with_one_vote_is_found(contenders, nodes, history, rule, violations):
    one, other = contenders(rule)

    def free_one_node():
        eventually(lambda: nodes.keys().get(b"r") == [0, 1, 2, 3, 4], 20, "all have granted")
        nodes[4].command("DEL", "r")

    found, refused = two_holds(one, other, free_one_node, history)
    assert len(found) == len(refused) == violations, found + refused
    assert all("two holders: one and other" in words for words in found)
    assert all("r: no lock allows these operations" in words for words in refused)


@pytest.mark.parametrize("lost, violations", [(True, 1), (False, 0)], ids=["without data", "with data"])
def test_only_restarts_without_data_let_two_in(make_cluster, history, lost, violations):
    """What the limits say of nodes that lose data without the guard, which the soak's do with --lose-data only."""
    assert not soak.arguments(["--minutes", "1"]).lose_data
    cluster = make_cluster(5, config=soak.DURABLE)
    one, other = (Party("c", cluster, ttl_ms=LONG_MS, guard="off") for _ in range(2))

    def restart():
        for node in cluster:
            soak.restart(node, lost)

    try:
        found, refused = two_holds(one, other, restart, history)
    finally:
        one.close()
        other.close()
    assert len(found) == len(refused) == violations, found + refused


@pytest.mark.parametrize("how", [[], ["--guard", "--every", "0.2"]], ids=["", "guard"])
def test_a_short_soak_finds_no_violation(tmp_path, capsys, how):
    """A few seconds of all faces under faults, as `./dev soak` runs them for longer."""
    files = ["--log", str(tmp_path / "log.jsonl"), "--history", str(tmp_path / "history.jsonl")]
    for face in faces.FACES:
        if faces.missing(face):
            pytest.fail("the face %s is required: %s" % (face, faces.missing(face)), pytrace=False)
    assert soak.main(["--minutes", "0.2", "--seed", "7", *how, *files]) == 0, capsys.readouterr().out
    out = capsys.readouterr().out
    assert "no violation" in out and "judge: a lock allows all" in out
    assert all("holds of " + face in out for face in faces.FACES)


def test_idle_face_or_kind_is_reported():
    counts = collections.Counter({"holds of " + what: 1 for what in ("c", "writers", "two resources")})
    words = soak.too_little(counts, ["c", "php"])
    assert words == ["too little work: no hold of " + what for what in ("php", "readers", "permits", "hashes")]


@pytest.mark.parametrize("minutes", ["0", "-1", "soon"])
def test_a_wrong_duration_is_refused(capsys, minutes):
    with pytest.raises(SystemExit):
        soak.arguments(["--minutes", minutes])
    assert "--minutes" in capsys.readouterr().err
