#!/usr/bin/env python3
"""Shows what libredlock does, on five real nodes that are started for it and of which some are killed on the way.

Exit status 0 if everything came as expected; nothing stays behind. Build first: `./dev demo` does both.
"""
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python" / "libredlock"))
import php_step  # noqa: E402
import python_step  # noqa: E402
import tls_step  # noqa: E402
from steps import BIN, BUILD, KEYS_END_S, LIMIT_S  # noqa: E402
from testing import Cluster, eventually  # noqa: E402

BUSY, NO_QUORUM = 75, 69
PATIENCE = ["--node-timeout", "2s"]  # with 50 ms a stall of the machine would be a verdict
GENEROUS_TIMEOUTS = "connect_timeout_ms = 20000\nexit_drain_ms = 20000\n"


class Unexpected(Exception):
    """Something was not as it should be."""


class Demo:
    """The nodes, a folder, and the processes that are running."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="redlock-demo-"))
        self.running = []
        self.cluster = None

    def open(self):
        self.cluster = Cluster(5, bootstrapped=False)
        (self.folder / "generous.conf").write_text(GENEROUS_TIMEOUTS)
        os.environ["REDLOCK_CONFIG"] = str(self.folder / "generous.conf")
        self.env = dict(os.environ, REDLOCK_NODES=self.cluster.nodes_env)

    def close(self):
        """Ends what is running; says what is left, which should be nothing."""
        for process in self.running:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.communicate()
        if self.cluster:
            self.cluster.close()
        shutil.rmtree(self.folder)
        return children() + [str(path) for path in self.folders() if path.exists()]

    def folders(self):
        return [self.folder] + ([Path(self.cluster.folder)] if self.cluster else [])

    def start(self, argv, shown):
        print("    $ " + shown)
        process = subprocess.Popen(argv, env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        self.running.append(process)
        return process

    def finish(self, process, given=None):
        """Waits for the end: exit status and what was printed; shows the latter."""
        out = process.communicate(given, timeout=LIMIT_S)[0]
        self.running.remove(process)
        show(out)
        return process.returncode, out

    def begin(self, *args):
        return self.start([BIN, *args], shlex.join(["redlock", *args]))

    def redlock(self, command, *args):
        return self.finish(self.begin(command, *PATIENCE, *args))

    def compile(self, source):
        """A program from docs/examples, as its users would build it."""
        program = self.folder / Path(source).stem
        print("    $ cc -o %s %s -lredlock" % (program.name, source))
        subprocess.run(["cc", "-o", program, ROOT / source, "-I", ROOT / "core" / "include", "-L", BUILD, "-lredlock",
                        "-Wl,-rpath," + str(BUILD)], check=True, timeout=LIMIT_S)
        return program


def show(text):
    for line in text.splitlines():
        print(textwrap.fill(line, 116, initial_indent="    ", subsequent_indent="      ", break_on_hyphens=False))


def say(text):
    print("  " + text)


def expect(condition, what):
    if not condition:
        raise Unexpected(what)


def read_line(process):
    line = process.stdout.readline()
    show(line)
    return line


def children():
    """Our processes that still exist."""
    listed = Path("/proc/self/task/%d/children" % os.getpid()).read_text().split()
    return ["process %s (%s)" % (pid, Path("/proc/%s/comm" % pid).read_text().strip()) for pid in listed]


# ---- the steps: each is shown with the first line of its description ---------------------------------------------

def token_in(out):
    """It comes last, after reports of a wait."""
    return (out.split() or [""])[-1]


def bootstrap(demo):
    """New nodes are told once that no lock is live on them; else the first lock would wait"""
    status, out = demo.redlock("bootstrap", "--yes")
    expect(status == 0 and out.count("registered") == 5, "bootstrap")


def acquire(demo):
    """A client takes the lock `orders:42` and gets a token"""
    status, out = demo.redlock("acquire", "--ttl", "20s", "orders:42")
    expect(status == 0 and len(token_in(out)) == 40, "acquire")
    demo.token = token_in(out)


def refuse(demo):
    """A second client is refused and told what every node said"""
    status, out = demo.redlock("acquire", "--wait", "0", "orders:42")
    say("exit status %d" % status)
    expect(status == BUSY, "the second client is refused as busy")
    expect(all(node.name in out for node in demo.cluster), "every node is named")


def extend(demo):
    """The holder extends the lock; then the nodes show it, and it is released"""
    status, _ = demo.redlock("extend", "--ttl", "30s", "orders:42", demo.token)
    expect(status == 0, "extend")
    extended = [node for node in demo.cluster if node.pttl("orders:42") > 20000]
    expect(len(extended) >= demo.cluster.quorum, "a majority has the longer TTL")
    status, out = demo.redlock("status", "orders:42")
    expect(status == 0 and out.count(demo.token[-8:]) >= 3, "status shows the token on a majority")
    status, _ = demo.redlock("release", "orders:42", demo.token)
    expect(status == 0, "release")


def renew(demo):
    """A lock is renewed for as long as its job runs: here beyond the first TTL of 5 s"""
    job = demo.begin("run", "--ttl", "5s", "sync", "--", "sh", "-c", "echo job begins; read go; echo job ends")
    expect("begins" in read_line(job), "the job begins")
    begun = time.monotonic()
    eventually(lambda: time.monotonic() - begun > 5.6, 30)
    status, _ = demo.redlock("acquire", "--wait", "0", "sync")
    expect(status == BUSY, "the lock is held after its first TTL")
    say("still held %.1f s after the job began" % (time.monotonic() - begun))
    status, _ = demo.finish(job, "go\n")
    expect(status == 0, "the job ends")


def two_nodes_down(demo):
    """Two of the five nodes are killed: locking goes on"""
    for node in demo.cluster.nodes[:2]:
        say("kill -9 %s" % node.name)
        node.kill()
    status, out = demo.redlock("acquire", "orders:43")
    expect(status == 0, "three nodes are enough")
    demo.token = token_in(out)
    expect(demo.redlock("release", "orders:43", demo.token)[0] == 0, "release with three nodes")


def three_nodes_down(demo):
    """A third node is killed: a clear refusal, no lock"""
    say("kill -9 %s" % demo.cluster[2].name)
    demo.cluster[2].kill()
    status, out = demo.redlock("acquire", "--wait", "0", "orders:44")
    say("exit status %d" % status)
    expect(status == NO_QUORUM, "two nodes are too few")
    expect(all(node.name in out for node in demo.cluster.nodes[:3]), "the dead nodes are named")


def nodes_restarted(demo):
    """The three nodes are started again without their data: they vote once no lock can be live"""
    for node in demo.cluster.nodes[:3]:
        node.restart()
    say("started: " + ", ".join(node.name for node in demo.cluster.nodes[:3]))
    status, out = demo.redlock("acquire", "--wait", "0", "orders:44")
    say("exit status %d" % status)
    expect(status == NO_QUORUM and "quarantined" in out, "nodes that lost their keys do not vote")
    say("an operator who knows that no lock is live need not wait:")
    expect(demo.redlock("bootstrap", "--yes")[0] == 0, "bootstrap")
    status, out = demo.redlock("acquire", "orders:44")
    expect(status == 0, "five nodes again")
    expect(demo.redlock("release", "orders:44", token_in(out))[0] == 0, "release")


def run_a_job(demo):
    """`redlock run` holds the lock around a job and exits with the job's status"""
    status, out = demo.redlock("run", "--ttl", "10s", "nightly-report", "--", "sh", "-c",
                               "echo this runs under $REDLOCK_RESOURCE; exit 3")
    say("exit status %d" % status)
    expect(status == 3 and "nightly-report" in out, "the job ran and its status came back")


def two_jobs(demo):
    """Two jobs contend for one lock: one after the other, never at once"""
    script = "echo $0 begins; echo $0 begins >>{0}; sleep 0.4; echo $0 ends; echo $0 ends >>{0}".format(
        shlex.quote(str(demo.folder / "log")))
    argv = [BIN, "run", "--wait", "60s", "report", "--", "sh", "-c", script]
    jobs = [demo.start([*argv, name], "redlock run --wait 60s report -- ./job %s &" % name) for name in ("one", "two")]
    for job in jobs:
        expect(demo.finish(job)[0] == 0, "both jobs run")
    words = [line.split() for line in (demo.folder / "log").read_text().splitlines()]
    order = [word for _, word in words]
    expect(order == ["begins", "ends"] * 2 and words[0][0] == words[1][0] and words[2][0] == words[3][0],
           "the jobs do not overlap")
    say("in the job's own log: " + ", ".join(" ".join(line) for line in words))


def c_program(demo):
    """A C program uses the library: acquire, extend, release"""
    program = demo.compile("docs/examples/lock.c")
    status, _ = demo.finish(demo.start([program, "from C"], './lock "from C"'))
    expect(status == 0, "the C program")


def stopped_holder(demo):
    """A holder that is stopped for longer than its TTL learns that it lost the lock"""
    program = demo.compile("docs/examples/hold.c")
    holder = demo.start([program, "orders:45", "3000"], "./hold orders:45 3000 &")
    expect(read_line(holder).startswith("held"), "the holder holds")
    say("kill -STOP the holder; its TTL is 3 s")
    holder.send_signal(signal.SIGSTOP)
    status, out = demo.redlock("acquire", "--wait", "30s", "orders:45")
    expect(status == 0, "another client gets the lock after the TTL")
    say("kill -CONT the holder")
    holder.send_signal(signal.SIGCONT)
    expect(read_line(holder).startswith("lost"), "the holder says that it lost the lock")
    expect(demo.finish(holder)[0] != 0, "the holder ends")
    expect(demo.redlock("release", "orders:45", token_in(out))[0] == 0, "the new holder was not disturbed")


def python(demo):
    """Python locks too: a with block, tasks of asyncio, and a lock that the shell took and Python extends"""
    python_step.step(demo.cluster)


def php(demo):
    """PHP locks too: run(), three Fibers, and a lock of PHP that Python is refused and C extends and releases"""
    php_step.step(demo.cluster)


def tls(demo):
    """Nodes that speak TLS only: refused without an authority, then used from the shell, C, Python and PHP"""
    tls_step.step(demo)


STEPS = [bootstrap, acquire, refuse, extend, renew, two_nodes_down, three_nodes_down, nodes_restarted, run_a_job,
         two_jobs, c_program, stopped_holder, python, php, tls]


def run_steps(demo):
    demo.open()
    server = demo.cluster[0].info("server")["redis_version"]
    print("Five nodes (Redis %s): %s" % (server, ", ".join(node.name for node in demo.cluster)))
    for number, step in enumerate(STEPS, 1):
        print("\n%d. %s" % (number, step.__doc__.splitlines()[0]))
        step(demo)
    demo.cluster.no_keys(KEYS_END_S)


def end(*_):
    raise SystemExit(128 + signal.SIGTERM)


def main():
    sys.stdout.reconfigure(line_buffering=True)
    signal.signal(signal.SIGTERM, end)
    begun = time.monotonic()
    for name in ("REDLOCK_GUARD", "REDLOCK_MAX_TTL_MS"):
        os.environ.pop(name, None)  # what is shown is the default
    demo = Demo()
    try:
        run_steps(demo)
        failed = None
    except (Unexpected, AssertionError, OSError, subprocess.SubprocessError) as error:
        failed = error
    except KeyboardInterrupt:
        failed = "interrupted"
    finally:
        left = demo.close()
    if failed or left:
        print("\nNOT AS EXPECTED: %s" % (failed or "left behind: " + ", ".join(left)))
        return 1
    print("\nAll %d steps came as expected in %.1f s; no process and no file is left." %
          (len(STEPS), time.monotonic() - begun))
    return 0


if __name__ == "__main__":
    sys.exit(main())
