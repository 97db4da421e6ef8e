"""What the documents tell people to type beside the quick starts (tests/packages), in the built tree."""
import os
import re
import subprocess
import sys
import time

import pytest

from command import BIN, CLIENT, LIMIT_S, REFUSED_CONFIG, ROOT
from guarding import MARKER
from testing import eventually, free_port
from testing.process import Child

sys.path.insert(0, str(ROOT / "tests/packages"))

from pages import blocks, section, typed  # noqa: E402

QUESTION = r"%s is quarantined for another \d+ s.*: is no lock live\? \[y/N\] ?"


@pytest.fixture
def three(nodes, redlock):
    """The nodes of the pages, bootstrapped, and the command with them."""
    chosen = nodes[:3]
    nodes.bootstrap(nodes=chosen)
    redlock.env["REDLOCK_NODES"] = ",".join(node.url for node in chosen)
    return chosen


@pytest.fixture
def type_in(redlock, tmp_path):
    """type_in(script): as a person types it into bash, in a terminal; questions are answered with yes."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/redlock").symlink_to(BIN)

    def run(script, **environment):
        (tmp_path / "typed").write_text(script)
        path = f"{tmp_path}/bin:{os.environ['PATH']}"
        done = subprocess.run(["script", "-qE", "never", "-ec", "bash -e typed", "/dev/null"], cwd=tmp_path,
                              input=b"y\n",
                              env={**redlock.env, "PATH": path, "NO_COLOR": "1", **environment},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
        said = done.stdout.decode().replace("\r\n", "\n")
        assert done.returncode == 0, said
        return said

    return run


def with_ports(text, nodes):
    """redis-cli -h ADDRESS has the port of the node that stands for the address."""
    return re.sub(r"-h 10\.0\.0\.(\d)", lambda found: f"-p {nodes[int(found.group(1)) - 1].port}", text)


def test_two_minutes_of_readme_work_as_shown(type_in, nodes, redlock):
    (block,) = [block.text for block in blocks(section("README.md", "Try it in two minutes"))]
    lines = [line[2:] for line in block.splitlines() if line.startswith("$ redlock ")]
    begin, second, status = lines
    answer = re.compile(rf"^redlock: held by {CLIENT}: 0 of 5 nodes granted \"demo\", 3 needed: .*\nstatus 75\n"
                        rf"held: by {CLIENT}, [0-9a-f]{{8}} on [345] of 5 nodes, \d+(\.\d)? s left\n", re.M)

    def is_answered():
        """The nodes are asked for the name for 250 ms at most, so a late machine may need several attempts."""
        said = type_in(f"{begin}\nuntil redlock status -q demo >/dev/null; [ $? = 75 ]; do :; done\n"
                       f"{second} || echo status $?\n{status} | tail -n 1\nkill %1\nwait || true\n")
        print(said)
        return answer.search(said)

    eventually(is_answered, LIMIT_S, answer.pattern)
    assert re.search(r"^redlock: held by libredlock \(pid \d+ on [\w-]+\) for \d", block, re.M)


def test_bootstrap_asks_what_guard_md_shows(type_in, three, nodes):
    for node in three:
        node.flush()
    assert type_in(typed("docs/guard.md", "The restart guard")).count("registered; it votes") == 3
    for node in three:
        node.flush()
    question, *_ = typed("docs/guard.md", "`redlock bootstrap`").splitlines()
    assert re.fullmatch(QUESTION % r"10\.0\.0\.1:6379", question)

    def is_quarantined_everywhere():
        type_in("redlock run -n registers -- true || true")  # ends with the first majority: others may not be connected
        return all(node.command("EXISTS", MARKER) for node in three)

    eventually(is_quarantined_everywhere, 20, "every node has a new marker")
    said = type_in("redlock bootstrap\n")
    assert re.search(QUESTION % re.escape(three[0].name), said), said
    assert said.count("registered; it votes") == 3


@pytest.mark.parametrize("page, heading, language", [
    ("docs/guard.md", "The number", "sh"),
    ("docs/nodes.md", "`max_ttl_ms`: the longest lease, and the length of a quarantine", "text")])
def test_a_list_that_ends_in_max_ttl_works_as_shown(type_in, three, nodes, page, heading, language):
    (line,) = typed(page, heading, language).split()
    *_, number = line.partition("?")
    nodes.bootstrap(nodes=three, max_ttl={"max_ttl=5m": 300, "max_ttl=10m": 600}[number])
    said = type_in("export %s?%s\nredlock run --ttl 4m long -- redlock doctor\n" % (
        "REDLOCK_NODES=" + ",".join(node.url for node in three), number))
    assert said.endswith("all 3 nodes may vote\n"), said


def test_numbers_are_raised_as_fencing_md_shows(type_in, three):
    up, *_ = typed("docs/fencing.md", "A number that the store should not have seen").splitlines()
    text = section("docs/fencing.md", "A number that the store should not have seen")
    get, delete = re.findall(r"`(redis-cli -h [^`]* (?:GET|DEL) [^`]*)`", text)
    every = "".join(with_ports(up.replace("10.0.0.1", f"10.0.0.{i}"), three) + "\n" for i in (1, 2, 3))

    def is_raised_there():
        """A majority may have been enough, without the node that is asked."""
        said = type_in(f"{every}redlock run --fence account:42 -- sh -c 'echo drawn $REDLOCK_FENCE'\n"
                       f"{with_ports(get, three)}\n{with_ports(delete, three)}\n")
        print(said)
        assert re.search(r"^drawn 1799999999000001$", said, re.M), said
        return said.endswith('"1799999999000001"\n(integer) 1\n')

    eventually(is_raised_there, LIMIT_S, "the node that is asked has the number")


def test_tls_md_runs_a_job_as_shown(type_in, make_cluster, authority, tmp_path):
    tls = authority.issue()
    cluster = make_cluster(3, tls=tls)
    command, _ = typed("docs/tls.md", "TLS").split("\n\n", 1)
    command = re.sub(r"rediss://r(\d)\.example:6379", lambda found: cluster.urls[int(found.group(1)) - 1], command)
    (tmp_path / "report").write_text("#!/bin/sh\necho reported under $REDLOCK_RESOURCE\n")
    (tmp_path / "report").chmod(0o755)
    said = type_in(command.replace("/etc/ssl/redis-ca.pem", tls.ca_file), REDLOCK_NODES="")
    assert said.endswith("reported under report\n")


def test_the_timer_of_alerts_md_tells_of_an_outage(type_in, three, tmp_path):
    line = typed("docs/alerts.md", "Where the metrics come from", "text")
    written = tmp_path / "redlock.prom"

    def votes():
        """What the line has written, after it ran once more."""
        type_in(line.replace("/var/lib/node_exporter", str(tmp_path)))
        assert not (tmp_path / "redlock.prom.new").exists()
        text = written.read_text()
        (asked,) = re.findall(r"^redlock_doctor_timestamp_seconds (\d+)$", text, re.M)
        assert 0 <= time.time() - int(asked) < LIMIT_S
        return re.findall(r"^redlock_node_votes_now\{.*\} (\d)$", text, re.M)

    assert votes() == ["1", "1", "1"]
    three[0].kill()
    three[2].kill()
    assert votes() == ["0", "1", "0"]


def test_kinds_md_locks_from_the_shell_as_shown(type_in, three, tmp_path):
    for name, says in {"read": "redlock status report:7", "write": "redlock status report:7",
                       "transfer": 'echo "$REDLOCK_RESOURCE"'}.items():
        (tmp_path / f"{name}.sh").write_text(f"#!/bin/sh\n{says} || [ $? = 75 ]\n")
        (tmp_path / f"{name}.sh").chmod(0o755)
    (tmp_path / "train").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "train").chmod(0o755)
    places = ("docs/kinds.md", "Shared"), ("docs/kinds.md", "Several resources"), ("docs/kinds.md", "Permits")
    said = type_in("".join(typed(*place) for place in places))
    assert re.search(r"^shared: .*\nheld: .*\naccount:1\naccount:2\n--gpu [0-3]\nSLOT\n.*^free: 0 of 4 permits held\n$",
                     said, re.M | re.S), said


def test_locks_that_are_hashes_work_as_shown(type_in, nodes, three, tmp_path):
    look = f"redis-cli -p {nodes[0].port} type import"
    (tmp_path / "import.sh").write_text(f"#!/bin/sh\nuntil {look} | grep hash; do sleep 0.01; done\n")
    (tmp_path / "import.sh").chmod(0o755)
    assert type_in(typed("docs/kinds.md", "Hash")).endswith("hash\n")
    nodes.bootstrap(nodes=nodes[:1])
    script = typed("docs/moving-from-hash-locks.md", "While old and new programs run")
    assert type_in(script.replace("redis://10.0.0.1", nodes[0].url)).endswith("hash\n")


@pytest.mark.parametrize("end", ["", "?max_ttl=2m"])
def test_the_number_is_lowered_as_day_two_says(type_in, three, redlock, end):
    (line,) = typed("docs/day-two.md", "Raise or lower `max_ttl_ms`").splitlines()
    nodes = redlock.env["REDLOCK_NODES"]
    raised = redlock("bootstrap", "--replace", "--yes", "--max-ttl", "2m")
    assert raised.returncode == 0, raised.stderr
    said = type_in(line, REDLOCK_NODES=nodes + end)
    assert "has no program asked for more than 30s for 2m? [y/N]" in said and said.count("was replaced; it votes") == 3
    assert [node.get(MARKER).split()[6] for node in three] == 3 * [b"30000"]


def test_five_nodes_become_three_as_the_first_week_says(type_in, redlock, nodes):
    redlock.env["REDLOCK_NODES"] = ",".join(node.url for node in nodes.nodes[:3])
    refused = redlock.once("acquire", "orders:42")
    assert refused.returncode == REFUSED_CONFIG and "its marker names 5 nodes" in refused.stderr
    said = type_in(typed("docs/first-week.md", "Shrinking from five nodes to three"))
    assert "is registered for 5 nodes: have all its programs been stopped for" in said
    assert said.endswith("\nall 3 nodes may vote\n"), said


@pytest.mark.new_nodes
def test_a_prefix_is_renamed_as_the_first_week_says(type_in, make_cluster, redlock):
    cluster = make_cluster(3)
    redlock.env["REDLOCK_NODES"] = ",".join(cluster.urls)
    assert redlock("bootstrap", "--new").returncode == 0
    line = typed("docs/first-week.md", "Renaming a key prefix")
    assert type_in(line).count(": registered; it votes") == 3
    assert redlock.once("run", "--key-prefix", "billing:", "job", "--", "true").returncode == 0


class Saving:
    """A server whose user comes from a file that it writes itself."""

    def __init__(self, folder, where):
        self.folder, self.port = folder, free_port()
        user = "user app on >old-password ~* &* +@all\n"
        folder.mkdir()
        (folder / "users.acl").write_text(user)
        (folder / "redis.conf").write_text("port %d\nbind 127.0.0.1\nsave \"\"\ndir %s\n%s" % (
            self.port, folder, {"aclfile": "aclfile users.acl\n", "configuration": user}[where]))
        self.url = "redis://127.0.0.1:%d" % self.port

    def start(self):
        self.child = Child(["redis-server", "redis.conf"], cwd=self.folder, stdout=subprocess.DEVNULL)
        ping = ["redis-cli", "-p", str(self.port), "ping"]
        eventually(lambda: subprocess.run(ping, capture_output=True).stdout == b"PONG\n", LIMIT_S, "it answers")


@pytest.fixture(params=["aclfile", "configuration"])
def saving(request, tmp_path):
    """Three of them, and what saves their users."""
    servers = [Saving(tmp_path / str(i), request.param) for i in range(3)]
    try:
        for server in servers:
            server.start()
        yield servers, {"aclfile": "ACL SAVE", "configuration": "CONFIG REWRITE"}[request.param]
    finally:
        for server in servers:
            server.child.end()


def test_passwords_that_are_rotated_survive_a_restart(saving, redlock, type_in, tmp_path):
    servers, save = saving
    user, password = tmp_path / "user", tmp_path / "password"
    user.write_text("app")
    redlock.env.update(REDLOCK_NODES=",".join(server.url for server in servers), REDLOCK_GUARD="off",
                       REDLOCK_USER_FILE=str(user), REDLOCK_PASSWORD_FILE=str(password))
    locked = lambda: redlock.once("run", "job", "--", "true").returncode  # noqa: E731
    shown = blocks(section("docs/day-two.md", "Rotate passwords"))
    add, remove = (block.text.replace("ACL SAVE", save) for block in shown)
    on_each = lambda lines: [type_in(with_ports(lines, 3 * [server])) for server in servers]  # noqa: E731
    password.write_text("old-password")
    password.chmod(0o600)
    on_each(add)
    assert locked() == 0
    password.write_text("new-password")
    assert locked() == 0
    on_each(remove)
    assert locked() == 0
    for server in servers:
        server.child.end()
        server.start()
    assert locked() == 0
    password.write_text("old-password")
    assert locked() == REFUSED_CONFIG
