"""The order of waiting under what disturbs it: a waiter that cannot win, a home node that is slow, waiters that die."""
import os
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any, Callable, Dict, List

from testing import Cluster, Proxy, eventually
from waiters import in_order

RESOURCE = "bench:000000"  # what the program contend locks
DEAD = 12
CANDIDATES = 12
TTL_MS = 2000


def waiting(cluster: Cluster, resource: str) -> int:
    """Each stands on two nodes."""
    return sum(node.command("ZCARD", "libredlock:q:" + resource) for node in cluster) // 2


def beside_one_that_cannot_win(cluster: Cluster, contend: List[str], measure: Callable[[Any], Dict[str, float]]
                               ) -> Dict[str, float]:
    """It wants a fencing number, and what stands in the place of that is none."""
    for node in cluster:
        node.command("SET", "libredlock:f:" + RESOURCE, "spoilt")
    waiter = subprocess.Popen([*contend, "--processes", "1", "--milliseconds", "60000", "--set", "fence=true"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        time.sleep(0.5)
        return measure([*contend, "--processes", "4"])
    finally:
        os.killpg(waiter.pid, 9)
        waiter.wait()
        for node in cluster:
            node.command("DEL", "libredlock:f:" + RESOURCE)


def home_number(cluster: Cluster) -> int:
    return list(cluster).index(in_order(cluster, RESOURCE.encode())[0])


def behind(cluster: Cluster, number: int, delay_ms: float, contend: Callable[[str], List[str]],
           measure: Callable[[Any], Dict[str, float]]) -> Dict[str, float]:
    """One node is reached through a proxy, which takes its time."""
    with Proxy(list(cluster)[number]) as proxy:
        proxy.delay(down_ms=delay_ms)
        urls = [proxy.url if i == number else node.url for i, node in enumerate(cluster)]
        return measure(contend(",".join(urls)))


def after_death(cluster: Cluster, redlock: Path, wake: str) -> Dict[str, float]:
    """How long the lock stays free after its holder and all waiters but the last have died."""
    name = "bench:death:" + wake
    env = dict(os.environ, REDLOCK_NODES=cluster.nodes_env)
    command = [str(redlock), "run", "--wake", wake, "--ttl", "%dms" % TTL_MS, "--wait", "60s", name, "--", "true"]
    for node in cluster:
        node.command("SET", name, "held", "PX", 10 * TTL_MS)
    waiters = []
    for number in range(DEAD + 1):
        waiters.append(subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL))
        eventually(lambda: waiting(cluster, name) == number + 1, 20)
    for node in cluster:  # its last renewal
        node.command("PEXPIRE", name, TTL_MS)
    end = time.monotonic() + TTL_MS / 1000
    for waiter in waiters[:-1]:
        waiter.kill()
        waiter.wait()
    waiters[-1].wait()
    return {"ms": (time.monotonic() - end) * 1000}


def hand_overs(cluster: Cluster, redlock: Path) -> Dict[str, float]:
    """From the work of one leader to that of the next: each of the candidates that stand by leads while `date` runs, so
    the start and the end of processes are in it."""
    name = "bench:lead"
    env = dict(os.environ, REDLOCK_NODES=cluster.nodes_env)
    lead = [str(redlock), "lead", name, "--"]
    first = subprocess.Popen([*lead, "cat"], env=env, stdin=subprocess.PIPE)
    eventually(lambda: sum(bool(node.command("EXISTS", name)) for node in cluster) >= 3, 20)
    candidates = []
    for number in range(CANDIDATES):
        candidates.append(subprocess.Popen([*lead, "date", "+%s%N"], env=env, stdin=subprocess.DEVNULL,
                                           stdout=subprocess.PIPE, text=True))
        eventually(lambda: waiting(cluster, name) == number + 1, 20)
    first.stdin.close()
    led = sorted(int(candidate.communicate()[0]) for candidate in candidates)
    first.wait()
    gaps = [(later - sooner) / 1e6 for sooner, later in zip(led, led[1:])]
    return {"ms": statistics.median(gaps), "longest_ms": max(gaps)}
