"""password_file and user_file: what is shown to the nodes is read at each connection. And where a secret is not."""
import os
import re
import subprocess
from contextlib import contextmanager, suppress

import pytest

import rl
from cli.command import Command
from helpers import lock_once, spin, why
from queueing import warnings
from rl import INVALID, OK
from testing import CLOSE

SOON = {"connect_timeout_ms": 2000}


@pytest.fixture
def node(make_cluster):
    return make_cluster(1, password="first", login=(None, None)).nodes[0]


@pytest.fixture
def password_file(tmp_path):
    return tmp_path / "password"


@pytest.mark.parametrize("text", ["first", "first\n", "first\r\nsecond\n"])
def test_the_first_line_is_the_password(node, make_client, password_file, text):
    password_file.write_text(text)
    assert "@" not in node.url
    lock_once(make_client([node.url], password_file=password_file))


def test_a_changed_password_is_read_from_its_file(node, make_client, password_file):
    password_file.write_text("first")
    client = make_client([node.url], password_file=password_file)
    lock_once(client)
    node.command("CONFIG", "SET", "requirepass", "second")
    password_file.write_text("second")
    node.password = "second"
    node.kill_clients()
    lock_once(client)


def test_a_user_of_an_acl_logs_in_from_files(make_cluster, make_client, tmp_path):
    node = make_cluster(1, users=["user locker on >sesame ~* +@all"], password="kit", login=(None, None)).nodes[0]
    (tmp_path / "user").write_text("locker\n")
    (tmp_path / "password").write_text("sesame\n")
    client = make_client([node.url], user_file=tmp_path / "user", password_file=tmp_path / "password")
    lock_once(client)
    assert "locker" in [row["user"] for row in node.clients()]


def test_the_url_s_password_comes_first(node, make_client, password_file):
    password_file.write_text("wrong")
    lock_once(make_client([node.url_with(password="first")], password_file=password_file))


@pytest.mark.parametrize("text, words", [(None, "no such file or directory"), ("", "it is empty"),
                                         ("\n", "it is empty"), (4096 * "x", "more than 4095 bytes"),
                                         ("fir\0st\n", "its first line has a NUL byte")])
def test_a_file_that_is_of_no_use_is_the_node_s_reason(node, make_client, password_file, text, words):
    if text is not None:
        password_file.write_text(text)
    client = make_client([node.url], settle=False, password_file=password_file, **SOON)
    said = why(client)
    assert said.startswith("password_file: %s: %s" % (words, str(password_file)[:60])), said
    password_file.write_text("first")
    lock_once(client)


def test_a_folder_is_no_file(node, make_client, tmp_path):
    client = make_client([node.url], settle=False, password_file=tmp_path, **SOON)
    assert why(client).startswith("password_file: is a directory: ")


def test_a_user_without_a_password_is_refused(node, tmp_path):
    client = rl.Client([node.url], open=False, user_file=tmp_path / "user")
    assert client.open() == INVALID
    assert client.message == "user_file is set without password_file"
    client.free()


@pytest.mark.parametrize("mode, is_told", [(0o600, False), (0o640, False), (0o604, True), (0o644, True)])
def test_password_file_readable_by_others_is_reported(make_cluster, authority, open_tls, tmp_path, mode, is_told):
    """Once, without what is in it; and it is used."""
    tls = authority.issue()
    node = make_cluster(1, users=["user locker on >sesame ~* +@all"], password="kit", login=(None, None),
                        tls=authority.issue()).nodes[0]
    files = {"password_file": tmp_path / "password", "user_file": tmp_path / "user", "tls_key_file": tls.key_file}
    files["password_file"].write_text("sesame")
    files["user_file"].write_text("locker")
    for path in files.values():
        os.chmod(path, mode)
    (tmp_path / "mounted").symlink_to(tmp_path / "password")  # as Kubernetes does
    files["password_file"] = tmp_path / "mounted"
    client = open_tls(node.url, tls_cert_file=tls.cert_file, **files)
    lock_once(client)
    assert [event["detail"][:90] for event in warnings(client)] == is_told * [
        ("%s is readable by others (mode %04o): %s" % (name, mode, path))[:90] for name, path in files.items()]


def test_a_secret_is_nowhere_to_be_read(node, make_client, password_file):
    password_file.write_text("first")
    client = make_client([node.url], password_file=password_file)
    lock_once(client)
    assert "first" not in str(client.describe()) and "first" not in str(client.events())


# ---- a server that repeats what it was sent ----------------------------------------------------------------------

SENT = "s3cret-Pa55"


def repeated(args):
    """As Redis answers to a command that it does not know."""
    return b"-ERR unknown command '%s', with args beginning with: %s\r\n" % (
        args[0], b" ".join(b"'%s'" % word for word in args[1:]))


def echo(args):
    return b"*%d\r\n%s" % (len(args), b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in args))


SAID = ("-ERR %s\r\n" % SENT).encode()
REPEATS = {
    "neither HELLO nor AUTH": {"HELLO": repeated, "AUTH": repeated},
    "AUTH": {"AUTH": repeated, "HELLO": b"-ERR unknown command\r\n"},
    "in other words": {"HELLO": SAID},
    "once more": {"HELLO": (SAID, SAID, SAID), "AUTH": (SAID, SAID)},
    "and closes": {"HELLO": (SAID, CLOSE)},
    "unasked": {"HELLO": (b"-LOADING\r\n", SAID)},
    "as it came": {"HELLO": echo, "AUTH": echo, "INFO": b"$-1\r\n"},
    "as the server": {"INFO": b"$-1\r\n", "HELLO": b"*8\r\n" + b"".join(
        b"$%d\r\n%s\r\n$%d\r\n%s\r\n" % (len(name), name, len(SENT), SENT.encode())
        for name in (b"mode", b"role", b"version", b"server"))},
    "for an old server": {name: repeated for name in (
        "HELLO", "AUTH", "INFO", "SELECT", "SCRIPT", "PROVE", "TIME", "GET", "SET", "CLIENT")},
}


@pytest.mark.parametrize("replies", REPEATS.values(), ids=REPEATS)
def test_an_answer_to_the_login_is_shown_nowhere(fake_server, make_client, replies):
    fakes = [fake_server(replies) for _ in range(3)]
    client = make_client(["redis://app:%s@%s/1" % (SENT, fake.name) for fake in fakes], settle=False,
                         outage_wait_ms=300)
    lock = client.lock()
    assert lock.acquire() not in (OK, rl.BUSY)
    spin(client, lambda: all(row["why"] for row in client.describe()["nodes"]))
    shown = [lock.message, client.message, client.describe(), client.events(), client.metrics(),
             [lock.answer(node) for node in range(3)], lock.verdict]
    assert SENT not in str(shown) and "Pa55" not in str(shown)


COMMANDS = [("doctor", "-v"), ("doctor", "--json"), ("acquire", "--json", "--wait", "0", "r"), ("doctor", "--metrics"),
            ("acquire", "-v", "--wait", "0", "r"), ("run", "--wait", "0", "r", "true"), ("status", "r"),
            ("status", "--json", "r"), ("ls", "r"), ("ls", "--json", "r"), ("bootstrap",), ("release", "r", 40 * "a"),
            ("extend", "r", 40 * "a"), ("release", "--force", "r")]


@pytest.mark.parametrize("replies", list(REPEATS.values())[:6], ids=list(REPEATS)[:6])
def test_no_command_shows_an_answer_to_the_login(fake_server, replies):
    fakes = [fake_server(replies) for _ in range(3)]
    command = Command(",".join("redis://app:%s@%s/1" % (SENT, fake.name) for fake in fakes))
    for words in COMMANDS:
        done = command(*words)
        assert (done.returncode != 0 or "--metrics" in words) and (done.stdout + done.stderr).strip(), words
        assert "Pa55" not in done.stdout + done.stderr, words


LISTS = ["redis://:s3,Pa55@a", "redis://u:7,Pa55@a", "redis://a?password=Pa55", "redis://u:Pa55/a", "rediss://u:Pa55@",
         "Pa55@a", "redis://a,redis://u:Pa55", "redis://:x@a,redis:/u:Pa55@a", "u:Pa55"]


@pytest.mark.parametrize("nodes", LISTS)
def test_no_command_shows_a_list_that_it_refuses(tmp_path, nodes):
    (tmp_path / "conf").write_text("nodes = %s\n" % nodes)
    command = Command(nodes)
    for words in ("doctor",), ("--nodes", nodes, "doctor"), ("doctor", "--json"), ("--config", tmp_path / "conf", "ls"):
        done = command(*map(str, words))
        assert done.returncode == 64 and "Pa55" not in done.stdout + done.stderr, done


# ---- in the memory of a process: what a core dump would show ----------------------------------------------------

FILLER = 40 * "-"  # what is freed has its first bytes overwritten
SECRET = "sesame%2Bopens%2Bnothing"
DECODED = "sesame+opens+nothing"
HUGE = 1 << 28


def holds(pid, texts):
    """How often its memory has one of the texts."""
    found = 0
    with open("/proc/%d/maps" % pid) as maps, open("/proc/%d/mem" % pid, "rb", 0) as memory:
        for line in maps:
            begin, end, rights = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+)", line).groups()
            size = int(end, 16) - int(begin, 16)
            if rights.startswith("rw") and size < HUGE:  # a sanitizer's
                with suppress(OSError, ValueError):
                    memory.seek(int(begin, 16))
                    data = memory.read(size)
                    found += sum(data.count(text.encode()) for text in texts)
    return found


@contextmanager
def process(urls, **options):
    """tests/live/c/secret.c, which has read the URLs."""
    program = os.path.join(os.path.dirname(os.path.realpath(rl.LIBRARY)), "tests", "live", "secret")
    hidden = ("LD_PRELOAD", "PYTEST_CURRENT_TEST")  # the latter has the texts
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    running = subprocess.Popen([program, *("%s=%s" % option for option in options.items())], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True, bufsize=1, env=environment)
    try:
        running.stdin.write(",".join(urls) + "\n")
        yield running
    finally:
        running.kill()
        running.wait()


def said(running):
    return running.stdout.readline().strip()


@pytest.mark.parametrize("password, word", [(SECRET, "OK"), ("not" + SECRET, "REFUSED_CONFIG")])
def test_a_password_is_wiped_when_the_client_is_freed(make_cluster, password, word):
    nodes = make_cluster(3, password=FILLER + DECODED, login=(None, None)).nodes
    urls = ["redis://:%s@%s:%d" % (FILLER + password, *node.address) for node in nodes]
    with process(urls, connect_timeout_ms=20000, node_timeout_ms=2000) as running:
        assert said(running) == word + " open"
        assert holds(running.pid, [SECRET]) == 0 and holds(running.pid, [DECODED]) == 3, "one in each URL"
        running.stdin.write("\n")
        assert said(running) == "freed"
        assert holds(running.pid, [SECRET, DECODED]) == 0


def test_a_password_that_was_no_longer_sent_is_wiped(tmp_path):
    """The server is gone before the set-up is written."""
    url = "redis://:%s@127.0.0.1:1" % (FILLER + SECRET)
    with process([url], connect_timeout_ms=300, outage_wait_ms=300) as running:
        assert said(running) == "NO_QUORUM open"
        running.stdin.write("\n")
        assert said(running) == "freed"
        assert holds(running.pid, [SECRET, DECODED]) == 0


@pytest.mark.parametrize("text, word", [(FILLER + DECODED, "OK"), ("wrong+" + DECODED, "REFUSED_CONFIG"),
                                        (DECODED + 2000 * "x", "REFUSED_CONFIG"),
                                        (DECODED + 5000 * "x", "NO_QUORUM")])
def test_a_password_of_a_file_is_kept_nowhere(make_cluster, password_file, text, word):
    nodes = make_cluster(3, password=FILLER + DECODED, login=(None, None)).nodes
    password_file.write_text(text)
    with process([node.url for node in nodes], password_file=password_file, connect_timeout_ms=20000,
                 node_timeout_ms=2000, outage_wait_ms=300) as running:
        assert said(running) == word + " open"
        assert holds(running.pid, [DECODED]) == 0
