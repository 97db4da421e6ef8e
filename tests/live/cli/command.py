"""Drives the binary `redlock` as a person or a script would."""
import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from pathlib import Path

from testing import Late, eventually
from testing.wait import in_time

ROOT = Path(__file__).resolve().parents[3]
BIN = os.environ.get("REDLOCK_BIN") or str(Path(os.environ.get("REDLOCK_BUILD_DIR") or ROOT / "build/dev") / "redlock")
TOKEN = re.compile(r"^[0-9a-f]{40}$")
LIMIT_S = 60
# One attempt is all that these have; the machine may be busy.
GENEROUS_TIMEOUTS = ("--node-timeout", "2s", "--connect-timeout", "5s")
# What is owed to a node that is slow is sent all the same; by default a command exits after half a second.
SETTINGS = Path(__file__).with_name("generous.conf")

CLIENT = r"libredlock \(pid \d+ on \S+\) for \d+(\.\d)? m?s"  # the holder of a lock, as the command prints it

USAGE, UNAVAILABLE, INTERNAL, BUSY, LOST, REFUSED_CONFIG, CANNOT_RUN, NOT_FOUND = 64, 69, 70, 75, 76, 78, 126, 127


class Command:
    """redlock with REDLOCK_NODES set; what it starts is ended by end()."""

    def __init__(self, nodes_env):
        self.env = dict(os.environ, REDLOCK_NODES=nodes_env, REDLOCK_CONFIG=str(SETTINGS))
        self.started = []

    def start(self, *args, **popen):
        return self._start([BIN, *args], **popen)

    def start_in_shell(self, script, *args, **popen):
        """"$0" is the command, "$@" what follows it."""
        return self._start(["sh", "-c", script, BIN, *args], **popen)

    def _start(self, argv, stdin=subprocess.DEVNULL, **popen):
        popen.setdefault("env", self.env)
        popen.setdefault("stdout", subprocess.PIPE)
        process = subprocess.Popen(argv, stdin=stdin, stderr=subprocess.PIPE, **popen)
        self.started.append(process)
        return process

    def __call__(self, *args, **popen):
        """Runs to the end: returncode, stdout and stderr as text."""
        return finish(self.start(*args, **popen))

    def once(self, command, *args, **popen):
        """A command that asks the nodes once."""
        wait = ("--wait", "0") if command in ("acquire", "run") else ()
        return self(command, *GENEROUS_TIMEOUTS, *wait, *args, **popen)

    def busy(self, words, *args):
        """A command that finds the lock busy and says these words about its holder. It asks the nodes for the name for
        250 ms at most, so a late machine may need several runs."""
        end = time.monotonic() + 20  # leases of 30 s last longer
        while True:
            done = self(*args)
            said = done.stdout + done.stderr
            if done.returncode == BUSY and re.search(words, said):
                return done
            in_time(time.monotonic() < end, "%r is missing in %r" % (words, said))

    def json(self, command, *args, **popen):
        done = self.once(command, "--json", *args, **popen)
        return done, json.loads(done.stdout)

    def acquire(self, resource, *options):
        """The token of a lock that all nodes have heard of; answers of the slower ones are waited for."""
        done = self("acquire", "--exit-drain", "10s", *options, resource)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def end(self):
        for process in self.started:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()
            for stream in filter(None, (process.stdin, process.stdout, process.stderr)):
                stream.close()


def finish(process, given=None):
    out, err = process.communicate(given, timeout=LIMIT_S)
    return subprocess.CompletedProcess(process.args, process.returncode, out.decode(), err.decode())


def read_until(stream, word):
    """What a pipe gives up to `word`."""
    seen = b""
    end = time.monotonic() + LIMIT_S
    while word.encode() not in seen:
        in_time(time.monotonic() < end, "%r is missing in %r" % (word, seen))
        if select.select([stream], [], [], 0.2)[0]:
            piece = os.read(stream.fileno(), 4096)
            assert piece, "%r is missing in %r" % (word, seen)
            seen += piece
    return seen.decode()


def begun_to_wait(nodes, start, *args, **popen):
    """Starts a command that finds the lock busy: what start gives, when it has asked all nodes."""
    before = [node.calls("set") for node in nodes]
    started = start(*args, **popen)
    eventually(lambda: all(node.calls("set") > calls for node, calls in zip(nodes, before, strict=True)), LIMIT_S,
               "the command asks the nodes")
    return started


def process_state(pid):
    """The letter of /proc: R, S, T, Z ...; None if there is no such process."""
    try:
        return Path("/proc/%d/stat" % pid).read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


def is_gone(pid):
    return process_state(pid) in (None, "Z")


def end_process(pid):
    """Whatever a failed test has left."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def all_gone(pids):
    eventually(lambda: all(map(is_gone, pids)), within_s=LIMIT_S, what="processes that stay: %s" % pids)


def pid_in(path):
    """The process id that a script wrote into a file."""
    return int(eventually(lambda: path.exists() and path.read_text().strip(), within_s=LIMIT_S, what=str(path)))


class Terminal:
    """A program on a pseudo-terminal of its own, as in a terminal window."""

    def __init__(self, argv, env):
        self.seen = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(argv[0], argv, env)

    def type(self, text):
        os.write(self.fd, text.encode())

    def expect(self, pattern):
        """Waits until the output since the last match matches; returns the match."""
        end = time.monotonic() + LIMIT_S
        while True:
            match = re.search(pattern, self.seen)
            if match:
                self.seen = self.seen[match.end():]
                return match
            in_time(time.monotonic() < end, "%r is missing in %r" % (pattern, self.seen))
            if select.select([self.fd], [], [], 0.2)[0]:
                self.seen += self._read()

    def _read(self):
        try:
            piece = os.read(self.fd, 4096).decode(errors="replace")
        except OSError:
            piece = ""
        assert piece, "the terminal was closed after %r" % self.seen
        return piece

    def wait(self):
        """The program's wait status; its output is read meanwhile."""
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._read_rest(0 if pid else 0.05)
            if pid:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
        raise Late("still running after %r" % self.seen)

    def _read_rest(self, patience_s):
        """What there is, and what comes within the time."""
        try:
            while select.select([self.fd], [], [], patience_s)[0]:
                self.seen += os.read(self.fd, 4096).decode(errors="replace")
        except OSError:
            time.sleep(0.01)

    def close(self):
        os.close(self.fd)
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


class Shell(Terminal):
    """An interactive bash with job control."""

    def __init__(self, env):
        super().__init__(["bash", "--norc", "--noprofile", "-i"], dict(env, PS1="ready$ ", TERM="dumb", HISTFILE=""))
        self.expect(r"ready\$ ")
        self.run("bind 'set enable-bracketed-paste off' 2>/dev/null; stty -echo")

    def run(self, line):
        """A command that ends by itself: its output."""
        self.type(line + "\n")
        match = self.expect(r"(?s)^(.*?)ready\$ ")
        return match.group(1).replace("\r", "")

    def status(self):
        return int(re.search(r"status=(\d+)", self.run("echo status=$?")).group(1))
