"""A command is added as docs/ARCHITECTURE.md says: its file, and its name in main.c."""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from command import ROOT, USAGE

BUILD = Path(os.environ.get("REDLOCK_BUILD_DIR") or ROOT / "build/dev")

GREET = """
#include "cli.h"

static int times = 1;

static const struct flag times_flag = FLAG_COUNT("times", &times, 9, "how often");

static int check(const struct args *args)
{
  return strcmp(args->resource, "nobody") == 0 ? fail(EXIT_USAGE, "nobody cannot be greeted") : 0;
}

static int greet(struct session *session)
{
  for (int i = 0; i < times; i++)
    printf("hello %s on %d nodes, %d ms\\n", session->args->resource, redlock_client_node_count(session->client),
           (int)session_option_ms(session, "ttl_ms"));
  return 0;
}

const struct command greet_command = {OVERVIEW("greet", "Look", "say hello to a lock", "[OPTION...] RESOURCE"),
                                      .help = "Says hello.\\nIt changes nothing.",
                                      .purposes = KIND,
                                      .also = "ttl_ms",
                                      DEFAULTS({"ttl_ms", "7000"}, {"guard", "off"}),
                                      FLAGS(&times_flag),
                                      .check = check,
                                      .run = greet};
"""


def files_to_add():
    """Those that the page names for a command."""
    (row,) = re.findall(r"^\| a command \| (.*) \|$", (ROOT / "docs/ARCHITECTURE.md").read_text(), re.M)
    return re.findall(r"`((?:core|docs|tests)/[^`]*)`", row)


def compiled(source, entry, to):
    """As the build compiles main.c."""
    command = shlex.split(entry["command"])
    command[command.index("-o") + 1], command[command.index("-c") + 1] = to, source
    subprocess.run(command, cwd=entry["directory"], check=True)


@pytest.fixture(scope="module")
def with_greet(tmp_path_factory):
    """The command with one more: its file beside the others, and a word in main.c."""
    folder = tmp_path_factory.mktemp("greet")
    (entry,) = [e for e in json.loads((BUILD / "compile_commands.json").read_text())
                if e["file"].endswith("core/cli/main.c")]
    (folder / "greet.c").write_text(GREET.replace('"cli.h"', f'"{ROOT}/core/cli/cli.h"\n#include <string.h>'))
    text = (ROOT / "core/cli/main.c").read_text()
    assert text.count(" X(bench)") == 1
    (folder / "main.c").write_text(text.replace(" X(bench)", " X(bench) X(greet)")
                                   .replace('"cli.h"', f'"{ROOT}/core/cli/cli.h"'))
    for name in "greet", "main":
        compiled(folder / f"{name}.c", entry, folder / f"{name}.o")
    linking = subprocess.run(["ninja", "-t", "commands", "redlock"], cwd=BUILD, check=True, capture_output=True,
                             text=True).stdout.splitlines()[-1]
    (main,) = re.findall(r"\S*core/cli/main\.c\.o", linking)
    linking = linking.replace(main, f"{folder}/main.o {folder}/greet.o")
    subprocess.run(linking.replace(" -o redlock ", f" -o {folder}/redlock "), shell=True, cwd=BUILD, check=True)
    return folder / "redlock"


@pytest.fixture
def greet(with_greet, redlock):
    return lambda *args: subprocess.run([with_greet, *args], env=redlock.env, capture_output=True, text=True)


def test_a_command_is_a_file_and_a_word():
    assert files_to_add() == ["core/cli", "core/cli/main.c", "docs/redlock.md", "tests/live/cli"]


def test_a_new_command_has_help_and_the_flags_of_its_purposes(greet):
    assert "\n  redlock greet      say hello to a lock\n" in greet("--help").stdout
    text = greet("greet", "--help-all").stdout
    assert text.startswith("Usage: redlock greet [OPTION...] RESOURCE\n\nSays hello.\nIt changes nothing.\n")
    flags = set(re.findall(r"--([a-z-]+)", text))
    assert {"times", "json", "node", "ttl", "permits", "tls-ca-file"} <= flags
    assert not {"wait", "queue", "fence", "max-hold", "guard", "renew"} & flags
    assert "(default 7s)" in text
    assert greet("greeet").stderr == "redlock: there is no command 'greeet'; did you mean greet?\n"


def test_a_new_command_runs_with_its_session(greet, nodes):
    assert greet("greet", "--times", "2", "world").stdout == f"hello world on {len(list(nodes))} nodes, 7000 ms\n" * 2


@pytest.mark.parametrize("args, says", [(("greet", "--times", "10", "x"), "--times 10: not a number from 1 to 9"),
                                        (("greet", "nobody"), "nobody cannot be greeted"),
                                        (("greet",), "RESOURCE is missing; usage: redlock greet [OPTION...] RESOURCE")])
def test_a_new_command_refuses_what_it_says(greet, args, says):
    done = greet(*args)
    assert (done.returncode, done.stdout, done.stderr) == (USAGE, "", f"redlock: {says}\n")
