#!/usr/bin/env python3
"""How those who wait fare under what disturbs them, in the simulated world of the tests, where time passes only while
all wait. So the figures say what the rules of waiting do, whatever the machine is, and nothing of its speed.

    disturbed.py LIBVIRTUAL    prints rows as JSON: what, unit, figure, comparison, bound
"""
import json
import os
import sys
from pathlib import Path
from typing import Any, Iterator, List, Sequence, Tuple

ROOT = Path(__file__).resolve().parent.parent
os.environ["REDLOCK_VIRTUAL"] = sys.argv[1]
sys.path[:0] = [str(ROOT / "tests" / "live"), str(ROOT / "python" / "libredlock"), str(ROOT / "tests")]
import helpers  # noqa: E402
import rl  # noqa: E402
import servers  # noqa: E402
import testing.wait  # noqa: E402
import world  # noqa: E402
from waiters import in_order  # noqa: E402
from world import Call  # noqa: E402
from world_paths import Proxy  # noqa: E402

world.enter(helpers, testing.wait)
now, sleep = world.time.monotonic, world.time.sleep

Rows = Iterator[Tuple[str, str, float, str, float]]


class Share:
    """What several alike have got."""

    def __init__(self) -> None:
        self.wins: List[int] = []
        self.longest_s = 0.0


class Scene:
    """Programs that take a lock again and again until the end, side by side; each letter of `keys` is a resource."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.end, self.calls = seconds, now() + seconds, []  # type: float, float, List[Call]

    def add(self, count: int, urls: Sequence[str], hold_s: float, keys: str = "r", pause_s: float = 0,
            one_client: bool = False, wake: str = "auto", **options: str) -> Share:
        share = Share()
        for number in range(count):
            if number == 0 or not one_client:
                client = rl.Client(urls, wake=wake)
            share.wins.append(0)
            lock = client.lock(*keys, ttl_ms=30000, **options)
            self.calls.append(Call(self._repeat, share, number, lock, hold_s, pause_s))
        return share

    def _repeat(self, share: Share, number: int, lock: Any, hold_s: float, pause_s: float) -> None:
        while now() < self.end:
            begun = now()
            status = lock.acquire(int((self.end - begun) * 1000) + 1)
            share.longest_s = max(share.longest_s, now() - begun)
            if status == rl.OK:
                share.wins[number] += 1
                sleep(hold_s)
                assert lock.release() == rl.OK, lock.message
                sleep(pause_s)

    def per_s(self, share: Share) -> float:
        for call in self.calls:
            call.join(600)
        return sum(share.wins) / self.seconds


def jain(wins: List[int]) -> float:
    return sum(wins) ** 2 / (len(wins) * sum(count * count for count in wins)) if any(wins) else 0.0


def nodes_of(scene: str, count: int = 5) -> Any:
    world.start(scene)
    return world.Cluster(count, bootstrap=servers._bootstrap)


def proxied(nodes: Any, one_way_ms: float = 0, only: Any = None) -> Tuple[List[str], List[Proxy]]:
    """Addresses before all nodes, or before one of them."""
    urls, proxies = [], []
    for node in nodes:
        if only in (None, node):
            proxies.append(Proxy(node))
            proxies[-1].delay(up_ms=one_way_ms, down_ms=one_way_ms)
        urls.append(proxies[-1].url if only in (None, node) else node.url)
    return urls, proxies


def held(urls: Sequence[str], **options: str) -> Any:
    lock = rl.Client(urls).lock("r", ttl_ms=30000, **options)
    assert lock.acquire(5000) == rl.OK, lock.message
    return lock


def contended(count: int, wake: str = "auto", leftover: bool = False) -> Tuple[float, Share]:
    nodes = nodes_of("contention", 3)
    if leftover:
        in_order(nodes, b"r")[0].command("SET", "r", "left behind", "PX", 10000)
    scene = Scene(9)
    share = scene.add(count, nodes.urls, 0.005, wake=wake)
    return scene.per_s(share), share


def contention() -> Rows:
    alone = contended(1)[0]
    for count in (16, 64):
        rate, share = contended(count)
        yield "%d contend, hold 5 ms" % count, "x alone", rate / alone, ">=", 0.96
        yield "  Jain's index", "", jain(share.wins), ">=", 0.99
        yield "  longest wait", "x clients x hold", share.longest_s / count / 0.005, "<=", 2
    yield "16 contend, wake=poll", "x alone", contended(16, wake="poll")[0] / alone, ">=", 0.8
    yield "16 contend, a key left behind at home", "x alone", contended(16, leftover=True)[0] / alone, ">=", 0.8


def two_homes() -> Rows:
    for count in (1, 20):
        nodes = nodes_of("two homes", 3)
        urls, (proxy,) = proxied(nodes, only=in_order(nodes, b"r")[0])
        scene = Scene(8)
        shares = [scene.add(64 - count, nodes.urls, 0.005), scene.add(count, urls, 0.005)]
        while now() < scene.end - 1:
            proxy.delay(down_ms=300)
            sleep(0.5)
            proxy.delay()
            sleep(0.5)
        scene.per_s(shares[0])
        wins = shares[0].wins + shares[1].wins
        yield "64 contend, home 0.3 s late for %d, half of the time" % count, "Jain's index", jain(wins), ">=", 0.97
        yield "  the most that one got", "x its share", max(wins) * 64 / sum(wins), "<=", 3


def far_away() -> Rows:
    urls, _ = proxied(nodes_of("far away"), 80)
    scene = Scene(60)
    yield "16 contend, hold 5 ms, one way 80 ms", "holds/s", scene.per_s(scene.add(16, urls, 0.005)), ">=", 2.5


def readers() -> Rows:
    nodes = nodes_of("readers")
    scene = Scene(40)
    readers, writers = (scene.add(20, nodes.urls, 1.5, pause_s=0.3, shared="true"), scene.add(2, nodes.urls, 0.5))
    scene.per_s(readers)
    yield "2 writers of 0.5 s among 20 readers of 1.5 s", "s, longest wait", writers.longest_s, "<=", 4
    urls, _ = proxied(nodes_of("readers together", 3), 20)
    writer, at, shared = held(urls), [], rl.Client(urls)

    def read() -> None:
        lock = shared.lock("r", ttl_ms=30000, shared="true")
        assert lock.acquire(60000) == rl.OK
        at.append(now())

    calls = [Call(read) for _ in range(60)]
    sleep(3)
    assert writer.release() == rl.OK
    for call in calls:
        call.join()
    yield "60 readers at 20 ms one way, from the first to the last", "s", at[-1] - at[0], "<=", 0.2


def fresh_readers() -> Rows:
    nodes = nodes_of("fresh readers")
    urls, _ = proxied(nodes, 1, only=in_order(nodes, b"r")[0])
    reader, writer = held(nodes.urls, shared="true"), rl.Client(nodes.urls).lock("r", ttl_ms=30000)
    waiting = Call(writer.acquire, 60000)
    sleep(1)
    passed = 0
    for _ in range(20):
        client = rl.Client(urls)
        passed += client.lock("r", ttl_ms=30000, shared="true").acquire(200) == rl.OK
        client.free()
    assert reader.release() == rl.OK and waiting.join() == rl.OK
    yield "fresh readers that pass a writer, home 2 ms further", "of 20", passed, "<=", 0


def sets() -> Rows:
    rates = []
    for count in (1, 16):
        nodes = nodes_of("the same set")
        scene = Scene(5)
        rates.append(scene.per_s(scene.add(count, nodes.urls, 0.005, keys="ab")))
    yield "16 contend for the same two resources", "x alone", rates[1] / rates[0], ">=", 0.8
    rates = []
    for count in (0, 1):
        nodes = nodes_of("a set of five")
        scene = Scene(80)
        singles = [scene.add(2, nodes.urls, 1, keys=key) for key in "abcde"]
        five = scene.add(count, nodes.urls, 0.01, keys="abcde", pause_s=0.5)
        rates.append(sum(scene.per_s(share) for share in singles))
    yield "a set of 5 beside 2 singles each, hold 1 s", "s, longest wait", five.longest_s, "<=", 12
    yield "  the singles", "x without", rates[1] / rates[0], ">=", 0.8
    for keys in ("fz", "zf"):
        rates = []
        for count in (0, 20):
            nodes = nodes_of("free behind sets")
            scene = Scene(20)
            free, _, _ = (scene.add(4, nodes.urls, 0.02, keys="f"), scene.add(1, nodes.urls, 25, keys="z"),
                          scene.add(count, nodes.urls, 0.01, keys=keys))
            rates.append(scene.per_s(free))
        yield "a free resource, %s in 20 sets of two" % ("first" if keys[0] == "f" else "last"), "x without", \
            rates[1] / rates[0], ">=", 0.75


def pinned() -> Rows:
    rates = []
    for count in (0, 1, 51):
        nodes = nodes_of("pinned")
        holder = held(nodes.urls, permits="2", slot="1")
        scene = Scene(8)
        free = scene.add(4, nodes.urls, 0.005, permits="2")
        scene.add(count, nodes.urls, 0.005, one_client=True, permits="2", slot="1")
        rates.append(scene.per_s(free))
        assert holder.release() == rl.OK
    for count, rate in zip((1, 51), rates[1:]):
        yield "permits beside %d that want the slot that is held" % count, "x without", rate / rates[0], ">=", 0.89


def gone() -> Rows:
    """From the release until one of those who can take the lock has it; a newcomer comes each 20 ms."""
    for what, count, bound in (("1 waiter hangs", 1, 0.3), ("3 waiters hang", 3, 1.0), ("40 waiters died", 40, 0.06)):
        nodes, taken = nodes_of(what, 3), []
        lock, (urls, proxies) = held(nodes.urls), proxied(nodes)
        for _ in range(count):
            Call(rl.Client(urls).lock("r", ttl_ms=30000).acquire, 120000)
            sleep(0.1)

        def take(newcomer: Any) -> None:
            if newcomer.acquire(20000) == rl.OK:
                taken.append(now())  # noqa: B023
                newcomer.release()

        calls = [Call(take, rl.Client(nodes.urls).lock("r", ttl_ms=30000))]
        sleep(0.5)
        for proxy in proxies:
            if "hang" in what:
                proxy.hold()
            else:
                proxy.refuse()
                proxy.drop()
        sleep(0.2)
        begun = now()
        assert lock.release() == rl.OK
        for _ in range(5):
            calls.append(Call(take, rl.Client(nodes.urls).lock("r", ttl_ms=30000)))
            sleep(0.02)
        for call in calls:
            call.join()
        yield what + " before those who come", "s without a holder", taken[0] - begun, "<=", bound


def uncontended() -> Rows:
    took = []
    for place in (-1, 0):  # in the resource's order: of a node that does not matter, of its home
        nodes = nodes_of("uncontended")
        urls, _ = proxied(nodes, 1, only=in_order(nodes, b"r")[place])
        scene = Scene(2)
        took.append(1 / scene.per_s(scene.add(1, urls, 0)))
    yield "a cycle alone, home 2 ms further", "x another node so far", took[1] / took[0], "<=", 1.05


SCENES = (contention, two_homes, far_away, readers, fresh_readers, sets, pinned, gone, uncontended)

if __name__ == "__main__":
    print(json.dumps([row for scene in SCENES for row in scene()]))
