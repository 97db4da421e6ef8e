"""Nodes and defaults in a file."""
import subprocess

import pytest

from command import GENEROUS_TIMEOUTS, USAGE


def without_nodes(redlock, **more):
    env = {name: value for name, value in redlock.env.items() if name not in ("REDLOCK_NODES", "REDLOCK_CONFIG")}
    return dict(env, **more)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "redlock.conf"


def nodes_line(nodes):
    return "nodes = %s\n" % ",".join(nodes.urls)


@pytest.mark.parametrize("command", [("acquire", "x"), ("status", "x"), ("run", "x", "--", "true"),
                                     ("release", "-q", "x", "0" * 40)])
def test_nodes_and_defaults_come_from_a_file(redlock, nodes, file, command):
    file.write_text("# the fleet\n\n  " + nodes_line(nodes) +
                    "ttl_ms=25000\nwait_ms = 60000 \r\nrenew = true\nkey_prefix = lock:")
    nodes.bootstrap(key_prefix="lock:")
    name, *rest = command
    done = redlock(name, *GENEROUS_TIMEOUTS, "--config", str(file), *rest, env=without_nodes(redlock))
    assert (done.returncode, done.stderr) == (0, "")
    if name == "acquire":
        assert 20000 < max(node.pttl("lock:x") for node in nodes) <= 25000


def test_the_environment_may_name_the_file(redlock, nodes, file):
    file.write_text(nodes_line(nodes))
    assert redlock("acquire", *GENEROUS_TIMEOUTS, "x",
                   env=without_nodes(redlock, REDLOCK_CONFIG=str(file))).returncode == 0


def test_config_goes_before_the_environments_file(redlock, nodes, file):
    file.write_text(nodes_line(nodes))
    env = without_nodes(redlock, REDLOCK_CONFIG="/nowhere")
    assert redlock("acquire", *GENEROUS_TIMEOUTS, "--config", str(file), "x", env=env).returncode == 0


SHIM = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define INSTEAD(name) \\
FILE *name(const char *path, const char *mode) \\
{ \\
  FILE *(*real)(const char *, const char *) = dlsym(RTLD_NEXT, #name); \\
  return real(strcmp(path, "/etc/redlock.conf") == 0 ? getenv("INSTEAD") : path, mode); \\
}
INSTEAD(fopen)
INSTEAD(fopen64)
"""


@pytest.fixture
def instead(tmp_path, file):
    """The environment in which the file stands for the machine's."""
    source, shim = tmp_path / "shim.c", tmp_path / "shim.so"
    source.write_text(SHIM)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, source, "-ldl"], check=True)
    return {"LD_PRELOAD": str(shim), "INSTEAD": str(file)}


def test_the_file_of_the_machine_is_read_by_default(redlock, nodes, file, instead):
    file.write_text(nodes_line(nodes))
    assert redlock("acquire", *GENEROUS_TIMEOUTS, "x", env=without_nodes(redlock, **instead)).returncode == 0
    done = redlock("acquire", *GENEROUS_TIMEOUTS, "x", env=without_nodes(redlock, REDLOCK_CONFIG="", **instead))
    assert done.returncode == USAGE and "no nodes are given" in done.stderr, "an empty name is no file"


def test_a_machine_needs_no_file(redlock, nodes, instead):
    env = without_nodes(redlock, REDLOCK_NODES=redlock.env["REDLOCK_NODES"], **instead)
    assert redlock("acquire", *GENEROUS_TIMEOUTS, "x", env=env).returncode == 0


def test_environment_and_flags_win(redlock, nodes, file):
    file.write_text("nodes = redis://127.0.0.1:1\nttl_ms = 15000\nwait_ms = 0\n")
    done = redlock("acquire", *GENEROUS_TIMEOUTS, "--ttl", "28s", "x", env=dict(redlock.env, REDLOCK_CONFIG=str(file)))
    assert done.returncode == 0 and 20000 < max(node.pttl("x") for node in nodes) <= 28000
    flags = [word for node in nodes for word in ("--node", node.url)]
    assert redlock("acquire", *GENEROUS_TIMEOUTS, "--config", str(file), *flags, "y",
                   env=without_nodes(redlock)).returncode == 0


@pytest.mark.parametrize("text, words", [
    ("ttl_ms = 30000\nttl = 30s\n", [":2: ", '"ttl"', "did you mean ttl_ms?"]),
    ("ttl_ms = 30s\n", [":1: ", 'ttl_ms is "30s"', "20 to 86400000"]),
    ("\n# x\nttl_ms = 5\n", [":3: ", 'ttl_ms is "5"']),
    ("retry_jitter\n", [":1: ", "not a line such as ttl_ms = 30000"]),
    ("redis://user:s3cret@10.0.0.1\n", [":1: ", "not a line such as"]),
    ("redis://user:s3=cret@10.0.0.1\n", [":1: ", "not a line such as"]),
    ("= 5\n", [":1: ", "not a line such as"]),
    ("ttl_ms = 30000\n\nttl_ms = 20000\n", [":3: ", "ttl_ms is already set in ", ":1"]),
    ("nodes = redis://u:s3cret@10.0.0.1,http://u:s3cret@10.0.0.2\n", [":1: ", "redis://"]),
    ("\nnodes =\n", [":2: nodes is empty"]),
    ('key_prefix = "lock:"\n', [":1: key_prefix begins with a quotation mark"]),
    ("nodes = 'redis://u:s3cret@10.0.0.1'\n", [":1: nodes begins with a quotation mark"]),
    ("ttl_ms = 30000\0\n", [":1: "]),
    ("node_timeout_ms = 20000\nttl_ms = 30000\n", ["node_timeout_ms (", ":1) is 20000", "ttl_ms (", ":2) 30000"]),
])
def test_bad_file_is_refused_with_file_and_line(redlock, nodes, file, text, words):
    file.write_text(text)
    done = redlock("acquire", "--config", str(file), "x")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (USAGE, "", 1), done.stderr
    assert [word for word in [str(file), *words] if word not in done.stderr] == [], done.stderr
    assert "s3cret" not in done.stderr and "cret@" not in done.stderr
    nodes.no_keys()


def test_value_unused_by_the_command_is_still_checked(redlock, file):
    file.write_text("max_hold_ms = soon\n")
    assert redlock("status", "--config", str(file), "x").returncode == USAGE


@pytest.mark.parametrize("how", ["flag", "environment"])
def test_a_file_that_is_not_there_is_refused(redlock, tmp_path, how):
    path = str(tmp_path / "missing")
    flag, env = (("--config", path), redlock.env) if how == "flag" else ((), dict(redlock.env, REDLOCK_CONFIG=path))
    done = redlock("acquire", *flag, "x", env=env)
    assert (done.returncode, done.stderr) == (USAGE, "redlock: %s cannot be read: No such file or directory\n" % path)


def test_a_file_that_cannot_be_read_is_refused(redlock, tmp_path):
    done = redlock("acquire", "--config", str(tmp_path), "x")
    assert (done.returncode, done.stderr) == (USAGE, "redlock: %s cannot be read: Is a directory\n" % tmp_path)


@pytest.mark.parametrize("mode, warned", [(0o644, True), (0o640, False), (0o600, False)])
def test_password_that_everybody_may_read_is_warned_of(redlock, nodes, file, mode, warned):
    file.write_text("nodes = redis://user:s3cret@127.0.0.1:1\n")
    file.chmod(mode)
    done = redlock("status", *GENEROUS_TIMEOUTS, "x", env=dict(redlock.env, REDLOCK_CONFIG=str(file)))
    assert done.returncode == 0 and ("is readable by everybody; chmod o-r %s" % file in done.stderr) == warned
    assert "s3cret" not in done.stderr


def test_library_warning_is_printed_once_on_stderr(redlock, nodes, tmp_path):
    secret = tmp_path / "password"
    secret.write_text("s3cret\n")
    secret.chmod(0o644)
    nodes.bootstrap(nodes=nodes.nodes[:2])
    done = redlock("run", "--node", ",".join(nodes.urls[:2]), "--password-file", str(secret), "x", "--", "echo", "done")
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert done.stderr.splitlines() == [
        "redlock: warning: an even number of nodes tolerates no more failures than one node fewer",
        "redlock: warning: --password-file is readable by others (mode 0644): %s" % secret]


def test_a_file_without_a_password_is_not_warned_of(redlock, nodes, file):
    file.write_text(nodes_line(nodes))
    file.chmod(0o644)
    assert redlock("status", *GENEROUS_TIMEOUTS, "--config", str(file), "x", env=without_nodes(redlock)).stderr == ""


# ---- precedence: a flag, the file that --config names, the environment, other files

def lock_ttl(nodes):
    return round(max(node.pttl("x") for node in nodes) / 1000)


def test_named_file_beats_the_environment(redlock, nodes, make_cluster, file):
    """What is typed for this call wins: with the nodes of the environment it would lock somewhere else."""
    other = make_cluster(1).nodes[0]
    file.write_text("nodes = %s\nttl_ms = 25000\n" % other.url)
    done = redlock("acquire", *GENEROUS_TIMEOUTS, "--config", str(file), "x",
                   env=dict(redlock.env, REDLOCK_TTL_MS="20000"))
    assert done.returncode == 0, done.stderr
    assert 20000 < other.pttl("x") <= 25000 and not any(node.get("x") for node in nodes)


@pytest.mark.parametrize("flags, environment, seconds", [
    (["--ttl", "15s"], {"REDLOCK_TTL_MS": "20000"}, 15),
    ([], {"REDLOCK_TTL_MS": "20000"}, 20),
    ([], {"REDLOCK_TTL_MS": ""}, 25),
    ([], {}, 25),
])
def test_environment_beats_the_machines_file(redlock, nodes, file, flags, environment, seconds):
    file.write_text(nodes_line(nodes) + "ttl_ms = 25000\n")
    env = without_nodes(redlock, REDLOCK_CONFIG=str(file), **environment)
    assert redlock("acquire", *GENEROUS_TIMEOUTS, *flags, "x", env=env).returncode == 0
    assert lock_ttl(nodes) == seconds


@pytest.mark.parametrize("name, value, words", [
    ("REDLOCK_GUARD", "foo", 'guard is "foo"; allowed: '),
    ("REDLOCK_TTL_MS", "30s", 'ttl_ms is "30s"; allowed: '),
    ("REDLOCK_TLS_VERIFY", "maybe", 'tls_verify is "maybe"; allowed: '),
])
@pytest.mark.parametrize("command", [("run", "x", "--", "true"), ("doctor",), ("status", "x"), ("bootstrap", "--yes")])
def test_variables_are_checked_by_every_command(redlock, name, value, words, command):
    done = redlock(*command, env=dict(redlock.env, **{name: value}))
    assert done.returncode == USAGE and "%s: %s" % (name, words) in done.stderr, done.stderr


@pytest.mark.parametrize("name, value", [
    ("REDLOCK_KEY_PREFIX", '"lock:"'),
    ("REDLOCK_KEY_PREFIX", "lock:\n"),
    ("REDLOCK_KEY_PREFIX", " lock:"),
    ("REDLOCK_NODES", "'redis://u:s3cret@127.0.0.1'"),
])
def test_variables_with_quotation_marks_are_refused(redlock, nodes, name, value):
    """As docker's --env-file leaves them: another prefix would not exclude the others."""
    done = redlock("acquire", "x", env=dict(redlock.env, **{name: value}))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (USAGE, "", 1), done.stderr
    assert name in done.stderr and "quotation mark" in done.stderr and "s3cret" not in done.stderr
    nodes.no_keys()


def test_lock_variables_are_set_for_the_command_alone(redlock, nodes):
    """REDLOCK_FENCE is a number there, not the option `fence`: locks nest."""
    inner = [redlock.start("--version").args[0], "run", "--fence", "inner", "--", "sh", "-c",
             'echo "$REDLOCK_RESOURCE $REDLOCK_FENCE"']
    done = redlock("run", *GENEROUS_TIMEOUTS, "--fence", "outer", "--", "sh", "-c", 'echo "$REDLOCK_FENCE"; exec "$@"',
                   "-", *inner)
    assert done.returncode == 0, done.stderr
    outer, inner = done.stdout.splitlines()
    assert int(outer) > 0 and inner.split()[0] == "inner" and int(inner.split()[1]) > 0


# ---- files

def test_paths_are_relative_to_the_file(redlock, make_cluster, file, tmp_path):
    server = make_cluster(1, password="s3cret").nodes[0]
    file.write_text("nodes = redis://%s\npassword_file = password\n" % server.name)
    (tmp_path / "password").write_text("s3cret\n")
    (tmp_path / "password").chmod(0o600)
    done = redlock("acquire", *GENEROUS_TIMEOUTS, "--config", str(file), "x", env=without_nodes(redlock), cwd="/")
    assert (done.returncode, done.stderr) == (0, "")
    done = redlock("acquire", *GENEROUS_TIMEOUTS, "--config", file.name, "y", env=without_nodes(redlock),
                   cwd=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")


def test_byte_order_mark_is_skipped(redlock, make_cluster, file, tmp_path):
    server = make_cluster(1, password="s3cret").nodes[0]
    password = tmp_path / "password"
    password.write_bytes(b"\xef\xbb\xbfs3cret\r\n")
    password.chmod(0o600)
    file.write_bytes(b"\xef\xbb\xbfnodes = redis://%s\r\npassword_file = password\r\n" % server.name.encode())
    done = redlock("acquire", *GENEROUS_TIMEOUTS, "--config", str(file), "x", env=without_nodes(redlock))
    assert (done.returncode, done.stderr) == (0, "")
