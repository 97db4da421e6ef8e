"""What the library does to its process: descriptors, threads, signals, memory, output."""
import contextlib
import os
import resource
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

import rl
from helpers import run_python, spin
from rl import OK
from testing import eventually


def descriptors():
    """Without those that another thread closes meanwhile, as one that looks a name up does."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            found[int(name)] = os.readlink("/proc/self/fd/" + name)
    return found


def flags(fd):
    with open("/proc/self/fdinfo/%d" % fd) as text:
        return int(next(line.split()[1] for line in text if line.startswith("flags:")), 8)


def test_all_descriptors_are_close_on_exec(nodes, make_client):
    before = descriptors()
    client = make_client(nodes.urls, renew="true")
    lock = client.lock()
    assert lock.acquire() == OK and client.fd >= 0
    ours = [fd for fd in descriptors() if fd not in before]
    assert len(ours) >= 6  # five sockets and what polls them
    assert all(flags(fd) & os.O_CLOEXEC for fd in ours)


def test_no_descriptor_is_left(nodes, servers):
    with rl.opened(nodes.urls, renew="true") as client:  # the keeper's own stay with the process
        assert client.lock().acquire() == OK
    urls = [*nodes.urls, "redis://127.0.0.1:1", "redis://localhost:2"]
    servers.bootstrap_for(urls, {})
    before = descriptors().items()
    for _ in range(20):
        with rl.opened(urls) as client:
            assert client.fd >= 0
            assert client.lock().acquire() == OK
    eventually(lambda: descriptors().items() <= before, 30)  # a name may be looked up still


def test_no_thread_is_started_without_need(nodes, client):
    before = set(os.listdir("/proc/self/task"))
    lock = client.lock()
    assert lock.acquire() == OK and lock.extend() == OK and lock.release() == OK
    assert set(os.listdir("/proc/self/task")) <= before


def test_nodes_that_die_raise_no_sigpipe_and_no_output(nodes):
    """Nodes that die under a client with the default action for SIGPIPE."""
    out = run_python("""
import signal; signal.signal(signal.SIGPIPE, signal.SIG_DFL)
client = rl.Client(sys.argv[1], **rl.GENEROUS_TIMEOUTS)
lock = client.lock(); assert lock.acquire(5000) == OK
for pid in sys.argv[2:]: os.kill(int(pid), signal.SIGKILL)
for _ in range(20):
    lock.extend(); client.process()
lock.release(); client.free()
""", nodes.nodes_env, *(node.pid for node in nodes))
    assert out == ""


def test_memory_does_not_grow(nodes, client):
    """Thousands of cycles, also with a node that hangs, keep what a client has."""
    def resident_kb():
        with open("/proc/self/statm") as text:
            return int(text.read().split()[1]) * resource.getpagesize() // 1024

    lock = client.lock(node_timeout_ms=50)

    def cycles(count):
        for _ in range(count):
            lock.acquire()
            lock.release()

    cycles(2000)
    nodes[0].stop()
    cycles(2000)
    before = resident_kb()
    cycles(6000)
    assert resident_kb() - before < 4096
    nodes[0].cont()
    spin(client, lambda: not nodes.keys(), 60, "no node has a key")


def test_failure_to_start_the_renewal_thread_is_reported(nodes):
    """Before anything is asked; without renewal there is a lock, and with descriptors again a renewed one."""
    out = run_python("""
import resource
client = rl.Client(sys.argv[1], **rl.GENEROUS_TIMEOUTS)
renewed, plain = client.lock("renewed", renew="true"), client.lock("plain")
assert plain.acquire(10000) == OK  # all that this takes is there
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
print(renewed.acquire(0).name, renewed.start(ACQUIRE).name, renewed.state.name, plain.extend().name)
print(renewed.message)
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
print(renewed.acquire(10000).name)
client.free()
""", nodes.nodes_env)
    statuses, message, later = out.splitlines()
    assert statuses.split() == ["INTERNAL", "INTERNAL", "FREE", "OK"]
    assert message == "renew: the renewal thread could not be started"
    assert later == "OK"


def test_open_files_that_are_exhausted_are_a_status(nodes):
    """Without descriptors there is a status, and with them again a lock."""
    out = run_python("""
import resource
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
used = max(int(fd) for fd in os.listdir("/proc/self/fd")) + 1
resource.setrlimit(resource.RLIMIT_NOFILE, (used, hard))
client = rl.Client(sys.argv[1], open=False, **rl.GENEROUS_TIMEOUTS)
opened = client.open()
lock = client.lock() if opened == OK else None
tried = lock.acquire(0) if lock else opened
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
if opened != OK:
    client.free(); client = rl.Client(sys.argv[1], **rl.GENEROUS_TIMEOUTS); lock = client.lock()
print(tried.name, lock.acquire(10000).name)
client.free()
""", nodes.nodes_env)
    tried, later = out.split()
    assert tried in ("INTERNAL", "NO_QUORUM") and later == "OK"


# ---- whose environment ---------------------------------------------------------------------------------------------

SETUID = Path(rl.LIBRARY).resolve().parent / "tests" / "live" / "setuid"


@pytest.fixture
def folder():
    """One that every user may enter."""
    path = Path(tempfile.mkdtemp(prefix="redlock-setuid-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.mark.parametrize("mode, said", [(0o755, "plain guard=off max_ttl_ms=7000"),
                                        (0o4755, "set-user-ID guard=marker max_ttl_ms=30000")])
def test_a_set_user_id_program_ignores_the_environment(folder, mode, said):
    """Whoever starts it could turn its guard off."""
    if os.geteuid() != 0 or os.statvfs(folder).f_flag & os.ST_NOSUID:
        pytest.skip("no program can be made set-user-ID here")
    program = folder / "program"
    shutil.copy(SETUID, program)
    program.chmod(mode)
    done = subprocess.run([program], user="nobody", stdout=subprocess.PIPE, text=True, timeout=60,
                          env={"REDLOCK_GUARD": "off", "REDLOCK_MAX_TTL_MS": "7000"})
    assert done.stdout == said
