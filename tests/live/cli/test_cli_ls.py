"""redlock ls: the locks that are held."""
import json
import re

from command import GENEROUS_TIMEOUTS, REFUSED_CONFIG, UNAVAILABLE, USAGE
from testing import eventually

TOKEN = "0123456789abcdef" * 2 + "01234567"


ME = r"worker-7 \(pid \d+ on \S+\)"


def rows(done):
    """{name: [kind, holder, held, left, waiting, token]}"""
    return {name: cells for name, *cells in (re.split(r"  +", line) for line in done.stdout.splitlines()[1:])}


def test_ls_names_the_holders(redlock, nodes):
    token = redlock.acquire("orders:42", "--ttl", "20s", "--client-name", "worker-7")
    redlock.acquire("orders:7", "--ttl", "20s", "--no-holder-info")
    redlock.acquire("invoices", "--ttl", "20s")
    done = redlock("ls", *GENEROUS_TIMEOUTS, "orders:")
    assert (done.returncode, done.stderr) == (0, "")
    listed = rows(done)
    assert list(listed) == ["orders:42", "orders:7"]
    assert done.stdout.splitlines()[0].split() == ["NAME", "KIND", "HOLDER", "HELD", "LEFT", "WAITING", "TOKEN"]
    kind, holder, held, left, waiting, shown = listed["orders:42"]
    assert (kind, waiting, shown) == ("plain", "0", token) and re.fullmatch(ME, holder)
    assert re.fullmatch(r"\S+ m?s", held) and re.fullmatch(r"\d+\.\d s", left)
    assert listed["orders:7"][:3] == ["plain", "not known", "-"]
    assert redlock("release", "orders:42", shown).returncode == 0


def test_ls_tells_how_many_wait(redlock, nodes):
    redlock.acquire("orders:42", "--ttl", "30s", "--client-name", "worker-7")
    waiters = [redlock.start("run", "--wait", "60s", "orders:42", "--", "true") for _ in range(2)]
    eventually(lambda: rows(redlock("ls", *GENEROUS_TIMEOUTS, "orders:"))["orders:42"][4] == "2", 20)
    done = redlock("status", *GENEROUS_TIMEOUTS, "orders:42")
    assert re.search(r"\nwaiting: 2, first libredlock \(pid \d+ on \S+\) for \S+ m?s\n$", done.stdout), done.stdout
    _, answer = redlock.json("status", "orders:42")
    assert answer["waiting"] == 2 and answer["first"]["pid"] in [waiter.pid for waiter in waiters]
    assert '\nredlock_resource_waiting{resource="orders:42"} 2\n' in \
        redlock("status", "--metrics", *GENEROUS_TIMEOUTS, "orders:42").stdout
    for waiter in waiters:
        waiter.terminate()


def test_ls_names_the_readers(redlock):
    one = [redlock.acquire("orders:1", "--shared", "--ttl", "20s", "--client-name", "worker-7")]
    two = [redlock.acquire("orders:2", "--shared", "--ttl", "20s") for _ in range(2)]
    done = redlock("ls", *GENEROUS_TIMEOUTS, "orders:")
    assert (done.returncode, done.stderr) == (0, "")
    listed = rows(done)
    assert listed["orders:1"][0] == "shared" and re.fullmatch(ME, listed["orders:1"][1])
    assert listed["orders:1"][5] == one[0] and listed["orders:2"][5] in two
    assert re.fullmatch(r"2 readers, one is libredlock \(pid \d+ on \S+\)", listed["orders:2"][1])
    done, answer = redlock.json("ls", "orders:")
    assert [(lock["verdict"], lock["nodes"], lock["held_by"]["readers"]) for lock in answer["locks"]] == \
        [("shared", 5, 1), ("shared", 5, 2)]
    for resource, tokens in {"orders:1": one, "orders:2": two}.items():
        for token in tokens:
            assert redlock("release", "--shared", resource, token).returncode == 0
    assert redlock("ls", *GENEROUS_TIMEOUTS, "orders:").stdout == ""


def test_ls_names_the_holder_of_a_hash(redlock, nodes):
    token = redlock.acquire("orders:1", "--layout", "hash", "--ttl", "20s", "--client-name", "worker-7")
    for node in nodes:
        node.command("HSET", "orders:cart", TOKEN, 1, TOKEN[::-1], 1)
        node.command("HSET", "orders:theirs", "owner", 1)
    done = redlock("ls", *GENEROUS_TIMEOUTS, "orders:")
    assert (done.returncode, done.stderr, list(rows(done))) == (0, "", ["orders:1"])
    kind, holder, *_, shown = rows(done)["orders:1"]
    assert (kind, shown) == ("hash", token) and re.fullmatch(ME, holder)
    assert redlock.json("ls", "orders:")[1]["locks"][0]["holder"] == token


def test_json_has_holder_verdict_and_nodes(redlock, nodes):
    token = redlock.acquire("orders:42", "--ttl", "20s")
    for node in list(nodes)[:2]:
        node.command("SET", "orders:split", TOKEN, "PX", 20000)
    done, answer = redlock.json("ls", "orders:")
    held, split = answer["locks"]
    assert done.returncode == 0 and answer["status"] == "OK" and answer["truncated"] is False
    assert (held["resource"], held["verdict"], held["nodes"], held["holder"]) == ("orders:42", "held", 5, token)
    assert 0 < held["holder_ttl_ms"] <= 20000 and held["held_by"]["client_name"] == "libredlock"
    assert split["resource"] == "orders:split" and split["nodes"] == 2 and "holder" not in split
    assert (held["kind"], held["waiting"], held["name"]) == ("plain", 0, "orders:42")
    assert [node["scanned"] for node in answer["nodes"]] == [True] * 5


def test_ls_lists_only_values_of_our_form(redlock, nodes):
    """Nor keys of other types, or of the library itself."""
    for node in nodes:
        node.command("SET", "a*b:text", "not a token")
        node.command("SET", "a*b:long", TOKEN + "0")
        node.command("SET", "a*b:upper", TOKEN.upper())
        node.command("RPUSH", "a*b:list", TOKEN)
        node.command("ZADD", "a*b:scores", 1, "not a token")
        node.command("SET", "axb:other", TOKEN)
        node.command("SET", "a*b:lock", TOKEN)
        node.command("SET", "libredlock:own", TOKEN)
    assert list(rows(redlock("ls", *GENEROUS_TIMEOUTS, r"a\*b:*"))) == ["a*b:lock"]
    assert list(rows(redlock("ls", *GENEROUS_TIMEOUTS, "a?b:*"))) == ["a*b:lock", "axb:other"]
    assert redlock("ls", *GENEROUS_TIMEOUTS, "libredlock:").stdout == ""


def test_a_key_prefix_may_stand_for_the_prefix(redlock, nodes):
    nodes.bootstrap(key_prefix="lock:")
    redlock.acquire("orders:42", "--key-prefix", "lock:", "--ttl", "20s")
    assert list(rows(redlock("ls", *GENEROUS_TIMEOUTS, "--key-prefix", "lock:"))) == ["orders:42"]
    assert list(rows(redlock("ls", *GENEROUS_TIMEOUTS, "--key-prefix", "lock:", "ord"))) == ["orders:42"]
    for command in "ls", "top":
        done = redlock(command)
        words = f"PATTERN is missing, and no --key-prefix is set; redlock {command} '' shows all of the nodes"
        assert done.returncode == USAGE and words in done.stderr
    redlock.acquire("orders:42", "--ttl", "20s")
    redlock.acquire("invoices", "--ttl", "20s")
    assert list(rows(redlock("ls", *GENEROUS_TIMEOUTS, ""))) == ["invoices", "lock:orders:42", "orders:42"]


def test_ls_lists_up_to_a_limit_and_says_so(redlock, nodes):
    for i in range(5):
        redlock.acquire("orders:%d" % i, "--ttl", "20s")
    done = redlock("ls", *GENEROUS_TIMEOUTS, "--limit", "3", "orders:")
    assert done.returncode == 0 and len(rows(done)) == 3
    assert "there are more than 3: give a longer PATTERN, or --limit N lists more" in done.stderr
    assert json.loads(redlock("ls", *GENEROUS_TIMEOUTS, "--json", "--limit", "3",
                              "orders:").stdout)["truncated"] is True
    done = redlock("ls", *GENEROUS_TIMEOUTS, "--limit", "5", "orders:")
    assert len(rows(done)) == 5 and done.stderr == ""
    assert redlock("ls", "--limit", "0", "x").returncode == USAGE


def test_ls_lists_more_keys_than_one_round_has(redlock, nodes):
    for node in nodes:
        node.command("EVAL", "for i = 1, 1500 do redis.call('SET', 'job:' .. i, ARGV[1], 'PX', 20000) end", 0, TOKEN)
    listed = rows(redlock("ls", *GENEROUS_TIMEOUTS, "--limit", "2000", "job:"))
    assert len(listed) == 1500 and listed["job:1500"][-1] == TOKEN


def test_columns_of_names_in_all_alphabets_are_in_line(redlock, nodes):
    for name in "job:a", "job:größe", "job:задача":
        nodes[0].set(name.encode(), TOKEN)
    head, *lines = redlock("ls", *GENEROUS_TIMEOUTS, "job:").stdout.splitlines()
    assert {line.index("no majority: 1 node") for line in lines} == {head.index("HOLDER")} and len(lines) == 3, lines


def test_ls_says_that_nothing_is_held(redlock):
    done = redlock("ls", *GENEROUS_TIMEOUTS, "orders:")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "redlock: no lock is held whose name begins with orders:\n"
    done, answer = redlock.json("ls", "orders:")
    assert (answer["locks"], done.stderr) == ([], "")


def test_names_do_not_reach_the_terminal_as_commands(redlock, nodes):
    for node in nodes:
        node.command("SET", b"a\x1b[31m\xff", TOKEN, "PX", 20000)
    done = redlock("ls", *GENEROUS_TIMEOUTS, "a")
    assert r"a\x1b[31m\xff" in done.stdout
    assert json.loads(redlock("ls", *GENEROUS_TIMEOUTS, "--json",
                              "a").stdout)["locks"][0]["resource_hex"] == "611b5b33316dff"
    done = redlock("status", *GENEROUS_TIMEOUTS, b"a\x1b[31m\xff", "two\nlines")
    assert r"a\x1b[31m\xff" in done.stdout.splitlines() and r"two\x0alines" in done.stdout.splitlines()
    assert redlock("ls", *GENEROUS_TIMEOUTS, b"b\xff").stderr.endswith("begins with b\\xff\n")
    done = redlock("acquire", "--node", "redis://127.0.0.1:1", "--outage-wait", "2s", b"a\xff")
    assert done.stderr.startswith(r'redlock: "a\xff" waits: 0 of 1 nodes granted "a\xff"'), done.stderr


def test_ls_says_which_nodes_were_not_scanned(redlock, nodes):
    redlock.acquire("orders:42", "--ttl", "30s")
    down = list(nodes)[:2]
    for node in down:
        node.kill()
    done = redlock("ls", *GENEROUS_TIMEOUTS, "orders:")
    assert done.returncode == 0 and rows(done)["orders:42"][0] == "plain"
    assert done.stderr.count("was not scanned: connection refused") == 2
    list(nodes)[2].kill()
    done = redlock("ls", *GENEROUS_TIMEOUTS, "orders:")
    assert done.returncode == UNAVAILABLE
    assert "2 of 5 nodes were scanned, 3 are needed for a whole list; `redlock doctor` says what to do" in done.stderr


ACL = """~* resetchannels &* -@all +hello +auth +select +info +set +get +getrange +pttl +zrange +zscore +exists +time
         +client|id +client|setname +eval +evalsha +script|load +del +pexpire""".split()


def test_the_operator_needs_scan(redlock, nodes):
    redlock.acquire("orders:42", "--ttl", "20s")
    redlock.acquire("orders:43", "--shared", "--ttl", "20s")
    redlock.acquire("orders:44", "--layout", "hash", "--ttl", "20s")
    for node in nodes:
        node.command("ACL", "SETUSER", "app", "reset", "on", ">s3cret", *ACL)
    urls = ",".join(node.url.replace("redis://", "redis://app:s3cret@") for node in nodes)
    redlock.env["REDLOCK_NODES"] = urls
    try:
        done = redlock("ls", *GENEROUS_TIMEOUTS, "orders:")
        assert (done.returncode, done.stdout) == (REFUSED_CONFIG, "")
        assert len(re.findall(r"was not scanned: .*(permission|can't run).*\(SCAN\)", done.stderr)) == 5, done.stderr
        assert "`redlock help acl` which rights" in done.stderr and "s3cret" not in done.stderr
        top = redlock("top", *GENEROUS_TIMEOUTS, "--rounds", "1", "orders:")
        assert (top.returncode, top.stdout, top.stderr) == (REFUSED_CONFIG, "", done.stderr)
        for node in nodes:
            node.command("ACL", "SETUSER", "app", "+scan")
        done = redlock("ls", *GENEROUS_TIMEOUTS, "orders:")
        assert (done.returncode, list(rows(done))) == (0, ["orders:42", "orders:43"]), "it may not read hashes"
        for node in nodes:
            node.command("ACL", "SETUSER", "app", "+hrandfield")
        assert list(rows(redlock("ls", *GENEROUS_TIMEOUTS, "orders:"))) == ["orders:42", "orders:43", "orders:44"]
    finally:
        for node in nodes:
            node.command("ACL", "DELUSER", "app")


def test_a_wrong_password_is_reported_and_not_shown(redlock, nodes):
    redlock.env["REDLOCK_NODES"] = ",".join(node.url.replace("redis://", "redis://x:wrong@") for node in nodes)
    for command in ("ls",), ("top", "--rounds", "1"):
        done = redlock(*command, *GENEROUS_TIMEOUTS, "orders:")
        assert done.returncode == REFUSED_CONFIG
        assert "was not scanned: WRONGPASS" in done.stderr and "wrong@" not in done.stderr
        assert "`redlock doctor` says what to do" in done.stderr and "+scan" not in done.stderr, "scans are not denied"


def test_a_node_that_hangs_is_said_not_to_be_scanned(redlock, nodes):
    redlock.acquire("orders:42", "--ttl", "30s")
    list(nodes)[0].stop()
    done = redlock("ls", "--connect-timeout", "1s", "orders:")
    assert done.returncode == 0 and "orders:42" in done.stdout
    assert "was not scanned: " in done.stderr


def test_ls_uses_tls_and_a_password_in_a_file(make_cluster, authority, redlock, tmp_path):
    cluster = make_cluster(3, tls=authority.issue(), password="s3cret", login=(None, None))
    (tmp_path / "password").write_text("s3cret\n")
    (tmp_path / "password").chmod(0o600)
    redlock.env.update(REDLOCK_NODES=cluster.nodes_env,
                       REDLOCK_PASSWORD_FILE=str(tmp_path / "password"), REDLOCK_TLS_CA_FILE=authority.ca_file)
    redlock.acquire("orders:42", "--ttl", "20s")
    done = redlock("ls", *GENEROUS_TIMEOUTS, "orders:")
    assert (done.returncode, done.stderr) == (0, "") and list(rows(done)) == ["orders:42"]
    redlock.env["REDLOCK_TLS_CA_FILE"] = ""
    assert "certificate is refused" in redlock("ls", *GENEROUS_TIMEOUTS, "orders:").stderr


def test_ls_asks_at_a_terminal_and_cuts_its_lines(shell, nodes, redlock):
    redlock.acquire("orders:" + "4" * 60, "--ttl", "20s")
    shell.run("stty cols 40")
    shell.type("redlock ls\n")
    shell.expect(r"go through all keys of 5 nodes\? \[y/N\] ")
    shell.type("y\n")
    shell.expect(r"\norders:4{33}\r?\n")
    shell.expect(r"ready\$ ")
    assert shell.status() == 0
    shell.type("redlock ls\n")
    shell.expect(r"\[y/N\] ")
    shell.type("n\n")
    shell.expect(r"ready\$ ")
    assert shell.status() == 1
