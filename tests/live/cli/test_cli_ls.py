"""redlock ls: the locks that are held."""
import json
import re

from command import GENEROUS_TIMEOUTS, REFUSED_CONFIG, UNAVAILABLE, USAGE

TOKEN = "0123456789abcdef" * 2 + "01234567"


def rows(done):
    """{resource: the rest of its row}"""
    return dict(re.split(r"  +", line, maxsplit=1) for line in done.stdout.splitlines()[1:])


def test_ls_names_the_holders(redlock, nodes):
    token = redlock.acquire("orders:42", "--ttl", "20s", "--client-name", "worker-7")
    redlock.acquire("orders:7", "--ttl", "20s", "--no-holder-info")
    redlock.acquire("invoices", "--ttl", "20s")
    done = redlock("ls", *GENEROUS_TIMEOUTS, "orders:")
    assert (done.returncode, done.stderr) == (0, "")
    listed = rows(done)
    assert list(listed) == ["orders:42", "orders:7"]
    assert re.fullmatch(r"5 of 5  \d+\.\d s   +%s  worker-7 \(pid \d+ on \S+\) for \S+ m?s" % token[:8],
                        listed["orders:42"].strip())
    assert re.fullmatch(r"5 of 5  \d+\.\d s   +[0-9a-f]{8}  not known", listed["orders:7"].strip())


def test_ls_names_the_readers(redlock):
    one = [redlock.acquire("orders:1", "--shared", "--ttl", "20s", "--client-name", "worker-7")]
    two = [redlock.acquire("orders:2", "--shared", "--ttl", "20s") for _ in range(2)]
    done = redlock("ls", *GENEROUS_TIMEOUTS, "orders:")
    assert (done.returncode, done.stderr) == (0, "")
    listed = rows(done)
    row = r"5 of 5  \d+\.\d s   +%s  %s \(pid \d+ on \S+\) for \S+ m?s"
    assert re.fullmatch(row % (one[0][:8], "1 reader, worker-7"), listed["orders:1"].strip())
    longest = row % ("[0-9a-f]{8}", "2 readers, with the longest lease libredlock")
    assert re.fullmatch(longest, listed["orders:2"].strip())
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
    assert re.fullmatch(r"5 of 5  \d+\.\d s   +%s  worker-7 \(pid \d+ on \S+\) for \S+ m?s" % token[:8],
                        rows(done)["orders:1"].strip())
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
    assert [node["scanned"] for node in answer["nodes"]] == [True] * 5


def test_ls_lists_only_values_of_our_form(redlock, nodes):
    """Nor keys of other types, of the library itself, or a prefix that is read as a pattern."""
    for node in nodes:
        node.command("SET", "a*b:text", "not a token")
        node.command("SET", "a*b:long", TOKEN + "0")
        node.command("SET", "a*b:upper", TOKEN.upper())
        node.command("RPUSH", "a*b:list", TOKEN)
        node.command("ZADD", "a*b:scores", 1, "not a token")
        node.command("SET", "axb:other", TOKEN)
        node.command("SET", "a*b:lock", TOKEN)
        node.command("SET", "libredlock:own", TOKEN)
    assert list(rows(redlock("ls", *GENEROUS_TIMEOUTS, "a*b:"))) == ["a*b:lock"]
    assert redlock("ls", *GENEROUS_TIMEOUTS, "libredlock:").stdout == ""


def test_a_key_prefix_may_stand_for_the_prefix(redlock, nodes):
    nodes.bootstrap(key_prefix="lock:")
    redlock.acquire("orders:42", "--key-prefix", "lock:", "--ttl", "20s")
    assert list(rows(redlock("ls", *GENEROUS_TIMEOUTS, "--key-prefix", "lock:"))) == ["orders:42"]
    assert list(rows(redlock("ls", *GENEROUS_TIMEOUTS, "--key-prefix", "lock:", "ord"))) == ["orders:42"]
    done = redlock("ls")
    assert done.returncode == USAGE
    assert "PREFIX is missing, and no --key-prefix is set; redlock ls '' lists all of the nodes" in done.stderr
    redlock.acquire("orders:42", "--ttl", "20s")
    redlock.acquire("invoices", "--ttl", "20s")
    assert list(rows(redlock("ls", *GENEROUS_TIMEOUTS, ""))) == ["invoices", "lock:orders:42", "orders:42"]


def test_ls_lists_up_to_a_limit_and_says_so(redlock, nodes):
    for i in range(5):
        redlock.acquire("orders:%d" % i, "--ttl", "20s")
    done = redlock("ls", *GENEROUS_TIMEOUTS, "--limit", "3", "orders:")
    assert done.returncode == 0 and len(rows(done)) == 3
    assert "there are more than 3: --limit N lists more" in done.stderr
    assert json.loads(redlock("ls", *GENEROUS_TIMEOUTS, "--json", "--limit", "3",
                              "orders:").stdout)["truncated"] is True
    done = redlock("ls", *GENEROUS_TIMEOUTS, "--limit", "5", "orders:")
    assert len(rows(done)) == 5 and done.stderr == ""
    assert redlock("ls", "--limit", "0", "x").returncode == USAGE


def test_ls_lists_more_keys_than_one_round_has(redlock, nodes):
    for node in nodes:
        node.command("EVAL", "for i = 1, 1500 do redis.call('SET', 'job:' .. i, ARGV[1], 'PX', 20000) end", 0, TOKEN)
    listed = rows(redlock("ls", *GENEROUS_TIMEOUTS, "--limit", "2000", "job:"))
    assert len(listed) == 1500 and listed["job:1500"].strip().startswith("5 of 5")


def test_columns_of_names_in_all_alphabets_are_in_line(redlock, nodes):
    for name in "job:a", "job:größe", "job:задача":
        nodes[0].set(name.encode(), TOKEN)
    head, *lines = redlock("ls", *GENEROUS_TIMEOUTS, "job:").stdout.splitlines()
    assert {line.index("  1 of 5  ") for line in lines} == {head.index("   NODES  ")} and len(lines) == 3, lines


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


def test_ls_says_which_nodes_were_not_scanned(redlock, nodes):
    redlock.acquire("orders:42", "--ttl", "30s")
    down = list(nodes)[:2]
    for node in down:
        node.kill()
    done = redlock("ls", *GENEROUS_TIMEOUTS, "orders:")
    assert done.returncode == 0 and rows(done)["orders:42"].strip().startswith("3 of 5")
    assert done.stderr.count("was not scanned: connection refused") == 2
    list(nodes)[2].kill()
    done = redlock("ls", *GENEROUS_TIMEOUTS, "orders:")
    assert done.returncode == UNAVAILABLE
    assert "2 of 5 nodes were scanned, 3 are needed for a whole list" in done.stderr


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
        assert done.stderr.count("was not scanned: NOPERM") == 5
        assert "its user needs +scan and +getrange" in done.stderr and "s3cret" not in done.stderr
        for node in nodes:
            node.command("ACL", "SETUSER", "app", "+scan")
        done = redlock("ls", *GENEROUS_TIMEOUTS, "orders:")
        assert (done.returncode, list(rows(done))) == (0, ["orders:42", "orders:43"]), "it may not read hashes"
        for node in nodes:
            node.command("ACL", "SETUSER", "app", "+type", "+hrandfield")
        assert list(rows(redlock("ls", *GENEROUS_TIMEOUTS, "orders:"))) == ["orders:42", "orders:43", "orders:44"]
    finally:
        for node in nodes:
            node.command("ACL", "DELUSER", "app")


def test_a_wrong_password_is_reported_and_not_shown(redlock, nodes):
    redlock.env["REDLOCK_NODES"] = ",".join(node.url.replace("redis://", "redis://x:wrong@") for node in nodes)
    done = redlock("ls", *GENEROUS_TIMEOUTS, "orders:")
    assert done.returncode in (UNAVAILABLE, REFUSED_CONFIG)
    assert "was not scanned: WRONGPASS" in done.stderr and "wrong@" not in done.stderr


def test_a_node_that_hangs_is_said_not_to_be_scanned(redlock, nodes):
    redlock.acquire("orders:42", "--ttl", "30s")
    list(nodes)[0].stop()
    done = redlock("ls", "--connect-timeout", "1s", "orders:")
    assert done.returncode == 0 and "orders:42" in done.stdout
    assert "was not scanned: no reply in time" in done.stderr


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
    assert "TLS: the server's certificate is refused" in redlock("ls", *GENEROUS_TIMEOUTS, "orders:").stderr
