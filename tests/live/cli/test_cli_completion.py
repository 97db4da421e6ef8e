"""Completion in bash, zsh and fish: of commands, of their flags, of files and of CMD."""
import os
import subprocess
from pathlib import Path

import pytest

from command import BIN, Terminal

SCRIPTS = Path(__file__).resolve().parents[3] / "core/cli/completion"
ENV = dict(os.environ, PATH="%s:%s" % (Path(BIN).parent, os.environ["PATH"]))


def bash(*words):
    code = ('source %s/redlock.bash; COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _redlock; '
            'printf "%%s\\n" "${COMPREPLY[@]}"' % SCRIPTS)
    return run("bash", "--norc", "-c", code, "bash", *words)


def fish(*words):
    line = " ".join(words)
    said = run("fish", "--no-config", "-c", "source %s/redlock.fish; complete -C '%s'" % (SCRIPTS, line))
    return [word.split("\t")[0] for word in said if word.startswith(words[-1])]


def run(*command):
    done = subprocess.run(command, env=ENV, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout.split("\n")[:-1]


@pytest.mark.parametrize("complete", [bash, fish])
def test_commands_and_flags_are_completed(complete):
    assert sorted(complete("redlock", "r")) == ["release", "run"]
    assert complete("redlock", "he") == ["help"]
    assert sorted(complete("redlock", "help", "r")) == ["release", "run"]
    assert complete("redlock", "run", "--kee") == ["--keep"]
    assert complete("redlock", "doctor", "--wat") == ["--watch"]
    assert sorted(complete("redlock", "acquire", "--ttl")) == ["--ttl"]
    assert "--keep" not in complete("redlock", "release", "--")


@pytest.mark.parametrize("complete", [bash, fish])
def test_values_of_flags_are_completed(complete):
    assert sorted(complete("redlock", "acquire", "--wake", "p")) == ["poll", "push"]
    assert complete("redlock", "acquire", "--guard", "ext") == ["external"]


def test_values_behind_an_equals_sign_are_completed():
    """In bash that is a word of its own."""
    assert sorted(bash("redlock", "acquire", "--wake", "=")) == ["auto", "poll", "push"]
    assert bash("redlock", "acquire", "--guard", "=", "ext") == ["external"]


def test_values_are_those_that_the_help_lists(tmp_path, monkeypatch):
    """Of any flag: none is named in the scripts."""
    (tmp_path / "redlock").write_text("#!/bin/sh\necho '      --colour=red|green  the colour (default red)'\n")
    (tmp_path / "redlock").chmod(0o755)
    monkeypatch.setitem(ENV, "PATH", "%s:%s" % (tmp_path, ENV["PATH"]))
    for complete in bash, fish:
        assert complete("redlock", "acquire", "--colour", "g") == ["green"]


@pytest.mark.parametrize("complete", [bash, fish])
def test_names_of_files_are_completed(complete, tmp_path):
    (tmp_path / "nodes.conf").write_text("")
    assert complete("redlock", "run", "--config", str(tmp_path / "no")) == [str(tmp_path / "nodes.conf")]


def test_the_job_is_completed_as_a_command():
    assert "printf" in fish("redlock", "run", "r", "--", "print")


@pytest.fixture
def zsh(tmp_path):
    """A zsh on a terminal."""
    terminal = Terminal(["zsh", "-f", "-i"], dict(ENV, TERM="dumb", HOME=str(tmp_path)))
    terminal.type("PROMPT='> '; fpath=(%s $fpath); autoload -U compinit && compinit -u -D && echo re''ady\n" % SCRIPTS)
    terminal.expect("ready")
    yield terminal
    terminal.close()


@pytest.mark.parametrize("typed, completed", [
    ("redlock rel\t", "redlock release "),
    ("redlock help rel\t", "redlock help release "),
    ("redlock run --kee\t", "redlock run --keep "),
    ("redlock run --wake pus\t", "redlock run --wake push "),
    ("redlock run --wake=pus\t", "redlock run --wake=push "),
    ("redlock run r -- printen\t", "redlock run r -- printenv "),
])
def test_zsh_completes_commands_flags_and_values(zsh, typed, completed):
    zsh.type(typed)
    zsh.expect(completed)
