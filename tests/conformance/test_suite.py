"""The suite itself: what the drivers say of themselves, bad messages, bad replies, bad cases, absent faces."""
import json
import os
import subprocess
import sys

import pytest

import faces
from common import occupy
from driver import Driver, Party, ProtocolError

PRINT = """import sys, json
for line in sys.stdin:
    print(%r %% {'id': json.loads(line)['id']}, flush=True)
"""


def test_every_lack_is_reviewed(face, make):
    """What a driver can is what its face does not lack; everything else that is missing fails here."""
    hello = make().hello
    assert hello.face == face
    assert set(hello.can) == set(faces.CAPABILITIES) - set(faces.LACKS[face])
    assert hello.cancel in ("command", "signal")


def test_every_face_is_of_this_version(face, make):
    header = (faces.ROOT / "core/include/redlock.h").read_text(encoding="utf-8")
    assert '#define REDLOCK_VERSION "%s"' % make().hello.version in header


BAD_LINES = {"no JSON": "{", "no object": "[1]", "no command": '{"id": 7, "do": "dance"}',
             "a field is missing": '{"id": 7, "do": "lock", "client": "c"}',
             "no such lock": '{"id": 7, "do": "release", "lock": "none"}',
             "a name that is no text": '{"id": 7, "do": "acquire", "lock": ["x"]}',
             "no options": '{"id": 7, "do": "lock", "lock": "l", "client": "c", "resource": "r"}',
             "options that are none": '{"id": 7, "do": "lock", "lock": "l", "client": "c", "resource": "r", '
                                      '"options": 5}',
             "no resource": '{"id": 7, "do": "lock", "lock": "l", "client": "c", "options": {}, "resource": 5}',
             "no hexadecimal": '{"id": 7, "do": "lock", "lock": "l", "client": "c", "options": {}, "resource": '
                               '{"hex": "0g"}}',
             "no such operation": '{"id": 7, "do": "start", "lock": "known", "what": "dance"}',
             "nothing was started": '{"id": 7, "do": "cancel", "lock": "none"}',
             "no list of commands": '{"id": 7, "do": "fork", "commands": 5}',
             "no such mode": '{"id": 7, "do": "exit", "mode": "slowly"}'}


@pytest.mark.parametrize("line", BAD_LINES)
def test_a_malformed_message_gets_line_and_reason(face, line):
    """And the driver goes on."""
    text = "\n".join(['{"id": 1, "do": "client", "client": "c", "options": {"nodes": "redis://127.0.0.1:1"}}',
                      '{"id": 2, "do": "lock", "client": "c", "lock": "known", "resource": "r", "options": {}}',
                      BAD_LINES[line], '{"id": 3, "do": "hello"}', ""])
    ended = subprocess.run(faces.ARGV[face], input=text.encode(), capture_output=True, timeout=250, check=True,
                           env=faces.environment())
    replies = [json.loads(line) for line in ended.stdout.splitlines()]
    bad = [reply for reply in replies if "malformed" in reply]
    assert len(replies) == 4 and len(bad) == 1, (replies, ended.stderr)
    assert bad[0]["line"] == 3 and bad[0]["malformed"]


@pytest.mark.parametrize("reply, words", [
    ("no JSON", "line 1 of its output: not JSON"), ("[%(id)d]", "line 1 of its output: not an object"),
    ('{"id": 99}', "no message with this id"), ('{"id": %(id)d, "status": "FINE"}', '"status" is missing or none')])
def test_a_malformed_reply_names_the_driver_and_the_line(reply, words):
    driver = Driver("c", [sys.executable, "-c", PRINT % reply])
    try:
        with pytest.raises(ProtocolError, match="drivers/driver_c.py.*" + words):
            driver.call("state", lock="x")
    finally:
        driver.close()


def test_driver_that_ends_is_reported():
    driver = Driver("c", ["true"])
    with pytest.raises(ProtocolError, match="the driver ended"):
        driver.call("hello")
    driver.close()


def test_a_malformed_message_names_its_place(nodes):
    party = Party("c", nodes)
    try:
        with pytest.raises(ProtocolError, match='driver_c.py, line 3 of its input: there is no lock "none"'):
            party.driver.call("release", lock="none")
    finally:
        party.close()


BAD_CASES = {"@pytest.mark.needs('flying')\ndef test_it(face):\n    pass\n":
             "3: test_it needs 'flying', which is no capability",
             "\ndef test_it(nodes):\n    pass\n": "4: test_it is a case of no face"}


@pytest.mark.parametrize("text", BAD_CASES, ids=["needs what there is not", "no face"])
def test_a_bad_case_gets_file_line_and_reason(tmp_path, text):
    case = tmp_path / "test_bad.py"
    case.write_text("import pytest\n\n" + text)
    (tmp_path / "conftest.py").write_text((faces.HERE / "conftest.py").read_text().replace(
        "Path(__file__).resolve().parent\n", "Path(%r)\n" % str(faces.HERE)))
    ended = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path),
                            str(case)], capture_output=True, text=True, timeout=250)
    assert ended.returncode != 0
    assert "%s:%s" % (case, BAD_CASES[text]) in ended.stdout + ended.stderr


@pytest.mark.needs("fork")
def test_a_malformed_command_of_a_fork_names_its_place(make):
    with pytest.raises(ProtocolError, match='command 2 of a fork: there is no lock "none"'):
        make().fork(("describe", None), ("release", None, {"lock": "none"}))


@pytest.mark.needs("start")
def test_replies_may_come_out_of_order(make, nodes):
    occupy(nodes)
    party = make()
    lock = party.lock()
    assert lock.start("acquire", -1) == "OK"
    waits = lock.driver.send("wait", lock=lock.name, limit_ms=-1)
    assert party.lock("other").made == "OK" and not waits.done.is_set()
    for node in nodes:
        node.command("DEL", "r")
    assert waits.result() == "OK"


def test_valkey_can_be_had():
    """The cases of two parties run on it too; REDLOCK_WITHOUT_VALKEY=1 allows that they do not."""
    got = subprocess.run([str(faces.HERE / "get-valkey")], capture_output=True, text=True, timeout=280)
    if got.returncode != 0 and os.environ.get("REDLOCK_WITHOUT_VALKEY") == "1":
        pytest.skip("valkey-server cannot be had here")
    if got.returncode != 0:
        pytest.fail("valkey-server is required for the cases of two parties (REDLOCK_WITHOUT_VALKEY=1 does without): "
                    + got.stderr[-500:], pytrace=False)
    assert "alkey" in subprocess.run([got.stdout.strip(), "--version"], capture_output=True, text=True).stdout


NOWHERE = "/nowhere"
ABSENT = ["%s is absent: %s" % (face, reason) for face, (_, reason) in faces.OPTIONAL.items()]
NO_PHP = [*ABSENT, " absent  absent\n", "the face php is required: /nowhere is not there"]


@pytest.mark.parametrize("variable, words", [
    ("REDLOCK_PHP", NO_PHP),
    *[(variable, ["the face %s is required: PHP cannot load it; $%s is '/nowhere'" % (face, variable)])
      for face, (variable, _) in faces.OPTIONAL.items()]])
def test_only_optional_faces_may_be_absent(tmp_path, variable, words):
    """Without PHP the optional faces are shown as absent, and the others fail; what was asked for is not absent."""
    environment = {name: value for name, value in os.environ.items()
                   if name not in [optional for optional, _ in faces.OPTIONAL.values()]}
    environment.update({variable: NOWHERE, "REDLOCK_MATRIX": str(tmp_path / "matrix.html")})
    ended = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k",
                            "is_of_this_version"], capture_output=True, text=True, timeout=280, env=environment)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert all(line in ended.stdout for line in words), ended.stdout
    assert ">FAIL<" in (tmp_path / "matrix.html").read_text(encoding="utf-8")


def test_a_driver_that_overstates_its_validity_is_found(parties, nodes):
    """A driver that says a little too much."""
    lock = parties("c").lock()
    took = lock.acquire()
    took["validity_ms"] += 1000
    with pytest.raises(AssertionError, match="over-stated"):
        lock.checked(took)


@pytest.mark.parametrize("forked", ["c", "cli", "python", "aio"])
def test_a_forked_driver_is_like_one_that_was_started(forked, monkeypatch):
    """It has what its file says it has, the environment of its case, and nothing of the driver beside it."""
    monkeypatch.setenv("REDLOCK_GUARD", "of this case")
    beside = Driver(forked)
    driver = Driver(forked)
    started = subprocess.Popen(faces.ARGV[forked], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               env=faces.environment())
    try:
        assert driver.call("hello").pid == driver.pid != beside.call("hello").pid
        started.stdin.write(b'{"id": 1, "do": "hello"}\n')
        started.stdin.flush()
        started.stdout.readline()
        assert len(os.listdir("/proc/%d/fd" % driver.pid)) == len(os.listdir("/proc/%d/fd" % started.pid))
        assert len(os.listdir("/proc/%d/task" % driver.pid)) == len(os.listdir("/proc/%d/task" % started.pid))
        driver.kill()
        assert driver.process.returncode == -9 and beside.call("hello").pid == beside.pid
    finally:
        for one in driver, beside:
            one.close()
        started.communicate()
