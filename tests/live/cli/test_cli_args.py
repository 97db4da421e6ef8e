"""What is refused before any node is asked, and help."""
import fcntl
import itertools
import json
import re
import struct
import termios

import pytest

from command import ROOT, USAGE

RUN = ("orders:42", "--", "true")


def options_of_the_library():
    """(name, flag) of every option, from the table."""
    import rl
    index = 0
    while True:
        name, unit = (rl.lib.redlock_option_at(index, field) for field in
                      (rl.lib.REDLOCK_OPTION_NAME, rl.lib.REDLOCK_OPTION_UNIT))
        if name == rl.ffi.NULL:
            return
        name, unit = rl.ffi.string(name).decode(), rl.ffi.string(unit).decode()
        yield name, "--" + (name[:-3] if unit == "ms" else name).replace("_", "-")
        index += 1


COMMANDS = re.findall(r"\bX\((\w+)\)", (ROOT / "core/cli/main.c").read_text().split("#define DECLARE")[0])
OPTIONS = [name for name, _ in options_of_the_library() if "_" in name]


@pytest.mark.parametrize("args, words", [
    ((), ["COMMAND is missing", "--help"]),
    (("aquire", "x"), ["'aquire'", "did you mean acquire?"]),
    (("qqqqqq", "x"), ["'qqqqqq'", "--help"]),
    (("acquire",), ["RESOURCE is missing"]),
    (("acquire", ""), ["1"]),
    (("extend", "x"), ["TOKEN is missing"]),
    (("release", "x"), ["TOKEN is missing"]),
    (("run",), ["RESOURCE is missing"]),
    (("run", "x"), ["-- before CMD is missing"]),
    (("run", "x", "true"), ["-- before CMD is missing; type: redlock run x -- true"]),
    (("run", "--ttl", "5s", "-n", "x", "ls", "-l", "a b"), ["type: redlock run --ttl 5s -n x -- ls -l 'a b'"]),
    (("run", "-E", "0", "x", "sh", "-c", "it's"), ["type: redlock run -E 0 x -- sh -c 'it'\\''s'"]),
    (("run", "x", "--"), ["CMD is missing"]),
    (("acquire", "--tll", "3s", "x"), ["--tll", "did you mean --ttl?"]),
    (("acquire", "--retry-cout=3", "x"), ["--retry-cout;", "did you mean --retry-count?"]),
    (("acquire", "--renew", "x"), ["--renew"]),
    (("run", "--tll=3s", *RUN), ["--tll", "did you mean --ttl?"]),
    (("acquire", "--ttl"), ["--ttl", "value is missing"]),
    (("acquire", "--ttl", "30", "x"), ["--ttl 30", "500ms, 30s, 2m, 1h"]),
    (("acquire", "--ttl", "3\n\x1b[1m", "x"), ["--ttl 3??[1m"]),
    (("acquire", "--ttl", "30 s", "x"), ["--ttl 30 s", "30s"]),
    (("acquire", "--ttl", "1e3s", "x"), ["--ttl 1e3s"]),
    (("acquire", "--ttl", "0.5ms", "x"), ["--ttl 0.5ms"]),
    (("acquire", "--ttl", "99999999999999999999h", "x"), ["--ttl 9999"]),
    (("acquire", "--ttl", "", "x"), ["--ttl"]),
    (("acquire", "--ttl", "-5s", "x"), ["--ttl -5s"]),
    (("acquire", "--ttl", "0", "x"), ["--ttl 0: allowed: 20ms to 24h"]),
    (("acquire", "--ttl", "-1", "x"), ["--ttl -1: allowed: 20ms to 24h"]),
    (("acquire", "--ttl", "31s", "--max-ttl", "30s", "x"), ["--ttl 31s is above --max-ttl, 30s: renew a shorter lock"]),
    (("acquire", "--ttl", "30s", "--node-timeout", "8s", "x"), ["--node-timeout is 8s", "--ttl 30s", "(7500ms)"]),
    (("acquire", "--wait", "-2", "x"), ["--wait -2"]),
    (("acquire", "--wait", "9999h", "x"), ["--wait 9999h: allowed: forever, or 0 to 8760h"]),
    (("acquire", "-w", "soon", "x"), ["-w soon", "30s"]),
    (("acquire", "-w", "", "x"), ["-w"]),
    (("acquire", "-w", "9999999999", "x"), ["-w 9999999999: allowed: forever, or 0 to 8760h"]),
    (("acquire", "-w", "600000m", "x"), ["-w 600000m: allowed: forever, or 0 to 8760h"]),
    (("status", "-n", "x"), ["no option -n"]),
    (("release", "--keep", "1s", "x", "y"), ["no option --keep"]),
    (("acquire", "--retry-count", "many", "x"), ["--retry-count many: allowed: -1 to 1000000000"]),
    (("acquire", "--retry-jitter", "2", "x"), ["--retry-jitter 2", "0 to 1"]),
    (("acquire", "-E", "256", "x"), ["256", "0 to 255"]),
    (("acquire", "-E", "x", "x"), ["--busy-exit x", "0 to 255"]),
    (("run", "--kill-after", "soon", *RUN), ["--kill-after soon", "30s"]),
    (("run", "--kill-after", "forever", *RUN), ["--kill-after forever", "30s"]),
    (("run", "--keep", "soon", *RUN), ["--keep soon", "30s"]),
    (("run", "--keep", "31s", "--max-ttl", "30s", *RUN), ["--keep 31s is above --max-ttl, 30s: keep it for less"]),
    (("run", "--keep", "25h", "--max-hold", "-1", *RUN), ["--keep 25h: allowed: up to 24h"]),
    (("run", "--keep", "2h", "--max-ttl", "24h", "--max-hold", "1h", *RUN), ["--keep 2h", "up to --max-hold (1h)"]),
    (("acquire", "--node", "http://127.0.0.1:1", "x"), ["--node", "http://127.0.0.1:1", "redis://"]),
    (("acquire", "--node", "redis://127.0.0.1:1", "--node", "redis://127.0.0.1:1", "x"), ["127.0.0.1:1"]),
])
def test_wrong_arguments_are_refused_in_one_line(redlock, nodes, args, words):
    done = redlock(*args)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (USAGE, "", 1), done.stderr
    assert done.stderr.startswith("redlock: ")
    assert [word for word in words if word not in done.stderr] == [], done.stderr
    assert [name for name in OPTIONS if re.search(r"\b%s\b" % name, done.stderr)] == [], "options by their flags"
    nodes.no_keys()


@pytest.mark.parametrize("args", [("acquire", "x"), ("run", *RUN), ("status", "x"), ("release", "x", "0" * 40)])
def test_without_nodes_it_says_how_to_name_them(redlock, args):
    env = {key: value for key, value in redlock.env.items() if key != "REDLOCK_NODES"}
    done = redlock(*args, env=env)
    assert (done.returncode, done.stderr.count("\n")) == (USAGE, 1)
    assert "--node redis://" in done.stderr and "REDLOCK_NODES=redis://" in done.stderr


def test_bad_nodes_in_the_environment_are_named(redlock):
    done = redlock("acquire", "x", env=dict(redlock.env, REDLOCK_NODES="nonsense"))
    assert done.returncode == USAGE and "REDLOCK_NODES" in done.stderr and "nonsense" in done.stderr


def test_password_stays_secret(redlock):
    done = redlock("acquire", "--node", "redis://user:s3cret@127.0.0.1:99999", "x")
    assert done.returncode == USAGE and "s3cret" not in done.stderr


@pytest.mark.parametrize("ttl, ttl_ms", [("1500ms", 1500), ("2s", 2000), ("0.5m", 30000), ("1.25s", 1250)])
def test_durations_have_units_and_fractions(redlock, nodes, ttl, ttl_ms):
    assert redlock("acquire", "--ttl", ttl, "x").returncode == 0
    assert max(node.pttl("x") for node in nodes) in range(ttl_ms - 1000, ttl_ms + 1)


def test_a_duration_may_be_hours(redlock, nodes):
    nodes.bootstrap(max_ttl=86400)
    assert redlock("acquire", "--ttl", "1h", "--max-ttl", "24h", "x").returncode == 0
    assert max(node.pttl("x") for node in nodes) in range(3590000, 3600001)


def test_every_option_is_a_flag(redlock):
    flags = [flag for _, flag in options_of_the_library()]
    helps = [redlock(command, "--help-all").stdout for command in ("run", "acquire", "extend", "release", "status")]
    assert {"--nodes", "--ttl", "--retry-count", "--strict-release"} <= set(flags)
    missing = [flag for flag in flags if not any(re.search(flag + r"\b", text) for text in helps)]
    assert missing == ["--nodes", "--renew", "--reentrant", "--max-extensions"], (
        "--node has one, redlock run sets the others itself, and keeps no handle that could be acquired again")


@pytest.mark.parametrize("args", [("--help",), ("-h",), ("help",)])
def test_the_overview_names_the_commands(redlock, args):
    done = redlock(*args)
    assert (done.returncode, done.stderr) == (0, "")
    assert all("redlock " + name in done.stdout for name in ("run", "acquire", "extend", "release", "status"))


def test_help_fits_into_80_columns(redlock):
    pages = [redlock("--help").stdout]
    commands = re.findall(r"^  redlock ([a-z]+)", pages[0], re.MULTILINE)
    pages += [redlock(command, "--help-all").stdout for command in commands]
    assert len(pages) == len(COMMANDS) + 2
    assert [line for page in pages for line in page.splitlines() if len(line) > 80] == []


def test_overview_describes_each_command_in_one_line(redlock):
    lines = [line for line in redlock("--help").stdout.splitlines() if line.startswith("  redlock ")]
    assert [line.split()[1] for line in lines] == [*COMMANDS, "help"]
    assert all(len(line) < 80 and len(line.split()) > 4 for line in lines)


@pytest.mark.parametrize("form", [("help", "acquire"), ("--help", "acquire"), ("acquire", "--help"), ("acquire", "-h")])
def test_all_forms_of_help_show_the_same(redlock, form):
    assert redlock(*form).stdout == redlock("acquire", "--help").stdout != redlock("--help").stdout


def test_help_of_what_is_no_command_is_refused(redlock):
    done = redlock("help", "aquire")
    words = "redlock: there is no command or topic 'aquire'; did you mean acquire?\n"
    assert (done.returncode, done.stderr) == (USAGE, words)
    done = redlock("help", "locks-on-mars")
    assert done.stderr == "redlock: there is no command or topic 'locks-on-mars'; see redlock --help\n"


def test_help_has_each_option_and_each_reason(redlock):
    import rl
    names = (rl.lib.redlock_reason_at(i, rl.lib.REDLOCK_REASON_NAME) for i in itertools.count())
    reasons = itertools.takewhile(lambda name: name != rl.ffi.NULL, names)
    for reason in map(rl.ffi.string, reasons):
        assert redlock("help", reason.decode()).stdout.startswith(reason.decode() + ": "), reason
    for option, flag in options_of_the_library():
        shown = [redlock("help", form).stdout for form in (option, flag)]
        assert all(f"{option}, {flag}\n  " in text for text in shown), option


def test_help_lists_the_options_for_a_purpose(redlock):
    assert re.findall(r"^(\w+), --", redlock("help", "kind").stdout, re.M) == ["shared", "permits", "slot", "layout"]
    said = redlock("help", "tls").stdout
    assert said.startswith("tls: ") and "\ntls_ca_file, --tls-ca-file\n" in said


def test_help_of_an_option_has_the_default_of_the_command(redlock):
    said = re.sub(r"\s+", " ", redlock("help", "wait").stdout)
    assert "Allowed: -1 to 31536000000. Default: 40s" in said
    assert "Default: 200ms" in said


def test_help_of_the_acl_has_the_rights_of_the_page(redlock):
    rights = set(re.findall(r"\+[a-z|]+", redlock("help", "acl").stdout))
    table = (ROOT / "docs/redlock.md").read_text().split("## Permissions")[1]
    assert {"+hello", "+msetnx", "+scan"} <= rights <= set(re.findall(r"\+[a-z|]+", table))


@pytest.mark.parametrize("words, line", [
    (("--config", "a.conf", "status", "x"), "redlock status --config ..."),
    (("--node=redis://:secret@127.0.0.1:1", "run", "x", "--", "status"), "redlock run --node ..."),
    (("--ttl",), "redlock COMMAND --ttl ..."),
])
def test_refused_leading_option_shows_the_corrected_line(redlock, words, line):
    done = redlock(*words)
    assert (done.returncode, done.stderr) == (USAGE, f"redlock: options follow the command; type: {line}\n")


def test_help_has_common_options_and_help_all_groups_the_rest(redlock):
    short, whole = redlock("run", "--help").stdout, redlock("run", "--help-all").stdout
    assert "--ttl=DURATION" in short and "--tls-verify" not in short
    more = int(re.search(r"^`redlock run --help-all` lists (\d+) more\.$", short, re.M).group(1))
    flag = re.compile(r"^  (-\w, |    )--", re.M)
    assert len(flag.findall(whole)) == len(flag.findall(short)) + more + 2  # --help and --help-all
    titles = re.findall(r"^(\w[\w ]*):$", whole, re.M)
    assert titles == ["Options", "Kinds of lock", "Nodes", "TLS", "Waiting and fencing", "Leases"]
    for words in ("--queue, --no-queue", "--wake=auto|push|poll", "--tls-ca-file=FILE", "(default on)", "(default off)",
                  "forever: no limit"):
        assert words in re.sub(r"\s+", " ", whole), words
    assert "-1 without limit (default 5s)" not in whole


def test_help_of_run_fits_one_screen(redlock):
    """One of 80 columns and 24 rows, with what a first lock needs."""
    lines = redlock("run", "--help").stdout.splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 80, "\n".join(lines)
    for flag in ("--keep", "--kill-after", "--no-wait", "--busy-exit", "--node", "--ttl", "--wait", "--config"):
        assert any(re.match(rf"  (-\w, |    ){flag}\b", line) for line in lines), flag


@pytest.mark.parametrize("columns, longest", [(50, 60), (100, 100), (200, 110)])
def test_help_fits_the_terminal(terminal, columns, longest):
    """Except where one word is longer."""
    program = terminal("acquire", "--help-all")
    fcntl.ioctl(program.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    program.wait()
    options = program.seen.replace("\r", "").partition("\nOptions:\n")[2]
    assert max(map(len, options.splitlines())) <= max(longest, 80)


@pytest.mark.parametrize("name", ["run", "acquire", "extend", "release", "status"])
def test_help_of_a_command_shows_its_usage_and_flags(redlock, name):
    done = redlock(name, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: redlock " + name) and "--node" in done.stdout and "--json" in done.stdout


@pytest.mark.parametrize("name", ["run", "acquire"])
def test_default_wait_is_in_the_first_lines_of_help(redlock, name):
    first = "\n".join(redlock(name, "--help").stdout.splitlines()[:6])
    assert re.search(r"Waits up to \d+s for a busy lock", first), first


def test_unlimited_hold_is_in_the_help_of_run(redlock):
    text = " ".join(redlock("run", "--help-all").stdout.split())
    assert re.search(r"--max-hold=DURATION [^(]*\(default forever\)", text)


@pytest.mark.parametrize("form", ["--version", "-V", "version"])
def test_all_forms_of_version_show_it(redlock, form):
    import rl
    assert redlock(form).stdout == "redlock %s\n" % rl.ffi.string(rl.lib.redlock_version()).decode()


@pytest.mark.parametrize("args", [("acquire", "--json", "--ttl", "30", "x"), ("acquire", "--tll", "1s", "--json", "x"),
                                  ("status", "--json"), ("aquire", "x", "--json"), ("release", "--json", "x"),
                                  ("acquire", "--json", "--node", "http://x", "x"), ("run", "--json", "x")])
def test_refusals_are_reported_in_json_too(redlock, args):
    done = redlock(*args)
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["status"], done.stdout.count("\n")) == (USAGE, "INVALID", 1)
    assert done.stderr == "redlock: %s\n" % answer["message"]


def test_json_of_the_job_is_not_for_redlock(redlock, nodes):
    done = redlock("run", "x", "--", "sh", "-c", "exit 64", "--json")
    assert (done.returncode, done.stdout, done.stderr) == (64, "", "")
