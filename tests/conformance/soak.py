#!/usr/bin/env python3
"""Processes of all faces contend for the same resources, alone, together, for two, permits or a hash, under faults.

A checker reads the log, and the judge the history of holds.

    soak.py [--minutes N] [--seed S] [--face NAME]... [--processes N] [--lose-data] [--guard] [--max-ttl-ms N|auto]
            [--every S] [--log FILE] [--history FILE] [--server NAME] [--nodes KIND] [--auth KIND]
"""
import argparse
import collections
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1] / "python" / "libredlock")]
sys.path.append(str(HERE.parent / "tools"))

import checker  # noqa: E402
import faces  # noqa: E402
import variants  # noqa: E402
from clocks import Clocks  # noqa: E402
from driver import Overstated, Party, ProtocolError, now_ms  # noqa: E402
from history import JUDGE, History, Hold, judge  # noqa: E402
from testing import BOTH, DOWN, UP, Cluster, Proxy, ReplyError  # noqa: E402

RESOURCES = ["orders", "stock", "mail"]
OF_PERMITS, PERMITS = "gpu", 3
HASH = "cart"  # its locks are hashes, but for a few
TTLS_MS = [800, 1200, 2000]
MAX_TTL_MS = 2000
WAIT_MS = 3000
PATIENCE_S = 60  # a slow machine has started the last face so late after the end at most
SLACK_MS = 20000  # a client may be stopped for a while, and the machine is busy
KINDS = ["writers", "readers", "two resources", "permits", "hashes"]
DURABLE = {"appendonly": "yes", "appendfsync": "always", "repl-diskless-sync-delay": 0}
TOKEN_AND_PTTL = """local token, is = nil, redis.call('type', KEYS[1]).ok
if is == 'zset' then token = redis.call('zrange', KEYS[1], -1, -1)[1]:sub(4)
elseif is == 'hash' then token = redis.call('hkeys', KEYS[1])[1]
else token = redis.call('get', KEYS[1]) end
return {token, redis.call('pttl', KEYS[1])}"""  # of one moment; of readers the one whose lease is longest
HELPER, SLOT = b"libredlock:", b"libredlock:s:"
GONE_MS = MAX_TTL_MS + 15000  # a lease's keys end so soon after it, though a debt or a late SET came to a busy node


def of_a_lock(key):
    return key.startswith(SLOT) or not key.startswith(HELPER)


def restart(node, lose_data, down_ms=0):
    """By way of a crash."""
    node.kill()
    time.sleep(down_ms / 1000)
    if lose_data:
        node.restart(empty=True)
    else:
        node.start()


class Log:
    def __init__(self, path):
        self.file = open(path, "w", encoding="utf-8")
        self.mutex = threading.Lock()
        self.records = []
        self.counts = collections.Counter()

    def write(self, kind, **fields):
        with self.mutex:
            self.records.append(dict(fields, kind=kind))
            self.file.write(json.dumps(self.records[-1]) + "\n")

    def count(self, what):
        with self.mutex:
            self.counts[what] += 1


class Worker(threading.Thread):
    """One process of a face that takes, extends, keeps and gives back; it is replaced when it was killed."""

    def __init__(self, soak, face, number):
        super().__init__()
        self.soak, self.face, self.log = soak, face, soak.log
        self.name = "%s-%d" % (face, number)
        self.random = random.Random("%s %s" % (soak.seed, self.name))
        self.party = None
        self.lives = 0

    def run(self):
        while not self.soak.over.is_set():
            self.lives += 1
            try:
                self.live()
            except ProtocolError as error:
                self.ended(error)
            except Exception as error:  # else the thread would end in silence
                self.log.write("end", party=self.name, status=repr(error))
            finally:
                if self.party is not None:
                    self.party.close()

    def ended(self, error):
        """A process is killed now and then; it does not end by itself, nor hang."""
        if self.party is None or not self.party.driver.has_ended():
            self.log.write("wait", party=self.name, what=str(error), from_ms=0, to_ms=None, limit_ms=0)
        elif self.party.driver.process.returncode != -signal.SIGKILL:
            self.log.write("end", party=self.name, status=self.party.driver.process.returncode, words=str(error))
        self.log.count("processes that ended")

    def live(self):
        self.party = None
        self.party = Party(self.face, self.soak.cluster, self.soak.urls, ttl_ms=1200, node_timeout_ms=200,
                           retry_delay_ms=60, **self.soak.options)
        while not self.soak.over.is_set():
            self.round()

    def choose(self):
        """What to lock, and how."""
        kinds = [self.choose_permit] * 3 + [self.choose_hash] * 1 + [self.choose_lock] * 6
        resource, options = self.random.choice(kinds)()
        if self.soak.guarded and (isinstance(resource, list) or options):
            options["fence"] = False  # these have no numbers, and the command refuses to give them some
        if "renew" in self.party.can and self.random.random() < 0.3:
            options["renew"] = True
        return resource, options

    def choose_lock(self):
        """Two resources at once now and then, in any order."""
        several = self.random.random() < 0.25
        options = {"shared": True} if self.random.random() < 0.4 else {}
        return self.random.sample(RESOURCES, 2) if several else self.random.choice(RESOURCES), options

    def choose_permit(self):
        """Any, or a certain one; now and then a plain lock, which takes slot 0."""
        how = self.random.random()
        options = {"permits": PERMITS} if how > 0.1 else {}
        if how > 0.85:
            options["slot"] = self.random.randrange(PERMITS)
        return OF_PERMITS, options

    def choose_hash(self):
        """Now and then a plain lock, which excludes the others."""
        return HASH, {"layout": "hash"} if self.random.random() < 0.9 else {}

    def round(self):
        (resource, options), ttl_ms = self.choose(), self.random.choice(TTLS_MS)
        lock = self.party.lock(resource, ttl_ms=ttl_ms, node_timeout_ms=ttl_ms // 4, **options)
        took = self.timed(lambda: self.unchecked(lock, "acquire", wait_ms=WAIT_MS), "acquire")
        self.log.count(took.status)
        if took != "OK":
            return
        shared, permits = options.get("shared", False), options.get("permits", 0)
        hold = Hold(self.soak.history, self.name, resource, took, shared, permits)
        try:
            self.keep(lock, hold)
            hold.release()
            gave = self.timed(lock.release, "release")
            self.log.count("released, " + gave.status)
        finally:
            hold.close()
            for one in hold.resources:
                self.log.write("hold", resource=one, token=took.token, party=self.name, from_ms=hold.from_ms,
                               to_ms=hold.end_ms, shared=shared, permits=permits, slot=hold.slot)
            self.log.count("holds of " + self.face)
            self.log.count("holds of readers" if shared else "holds of permits" if permits else "holds of writers")
            if "layout" in options:
                self.log.count("holds of hashes")
            if len(hold.resources) > 1:
                self.log.count("holds of two resources")

    def keep(self, lock, hold):
        """For a while, sometimes beyond its end; extends it or forks."""
        for _ in range(self.random.randrange(3)):
            time.sleep(self.random.choice([0, 0.01, 0.05, 0.3]))
            if self.random.random() < 0.5:
                extended = self.timed(lambda: self.unchecked(lock, "extend"), "extend")
                self.log.count("extended, " + extended.status)
                if extended == "OK":
                    hold.told(extended.t0_ms, extended.t0_ms + extended.validity_ms)
                elif extended == "LOST":
                    hold.lose(extended.t0_ms)
                    return
        if "fork" in self.party.can and self.random.random() < 0.05:
            self.log.count("forks")
            self.party.fork(("state", lock), ("release", lock))  # it has nothing to release
        if self.random.random() < 0.1:
            time.sleep(max(0, hold.end_ms - now_ms()) / 1000 + 0.01)
        if "validity" in self.party.can:
            self.ask(lock, hold)

    def ask(self, lock, hold):
        """What the handle itself says; a holder has to know its loss."""
        said = lock.driver.call("validity", lock=lock.name)
        if said.validity_ms > 0:
            hold.told(said.t0_ms, said.t0_ms + said.validity_ms)
            return
        ended_ms = now_ms() + 1  # a part of a millisecond may be left
        hold.lose(said.t0_ms)
        time.sleep(0.003)
        asked_ms, state = now_ms(), lock.state
        self.log.write("told", party=self.name, token=lock.token, ended_ms=ended_ms, at_ms=asked_ms, state=state)
        self.log.count("losses told" if state == "LOST" else "state " + state)
        if state == "HELD":
            hold.told(asked_ms, asked_ms)

    def unchecked(self, lock, what, **fields):
        """Over-statement goes into the log."""
        try:
            return getattr(lock, what)(**fields)
        except Overstated as error:
            if self.soak.guarded:  # a holder counts keys that were lost: the guard lets no other in
                self.log.count("believed in keys that were lost")
            else:
                self.log.write("over", party=self.name, by_ms=error.by_ms, words=str(error))
            return error.reply

    def timed(self, call, what):
        start_ms = now_ms()
        reply = call()
        self.log.write("wait", party=self.name, what=what, from_ms=start_ms, to_ms=now_ms(),
                       limit_ms=WAIT_MS + SLACK_MS)
        return reply


class Soak:
    def __init__(self, options):
        self.seed = options.seed
        self.every_s = options.every
        self.guarded = options.guard
        self.lose_data = options.lose_data or options.guard
        self.options = {"guard": "marker", "fence": "true"} if options.guard else {"guard": "off"}
        self.options["max_ttl_ms"] = options.max_ttl_ms
        self.random = random.Random(options.seed)
        self.log = Log(options.log)
        self.history = History(options.history)
        self.over = threading.Event()
        self.end_s = time.monotonic() + options.minutes * 60
        how = variants.cluster_options(options.auth, options.nodes)
        self.stepped = None  # the node whose clock is ahead, and since when
        if options.guard:
            self.folder = tempfile.TemporaryDirectory(prefix="redlock-clocks-")
            self.clocks = Clocks(Path(self.folder.name))
            how["server"] = self.clocks.servers(6)
        self.cluster = Cluster(5, config=DURABLE, bootstrapped=False, **how)
        self.spare = None
        self.proxies = [Proxy(node) for node in self.cluster]
        self.urls = [proxy.url for proxy in self.proxies]
        names = options.face or faces.FACES
        self.workers = [Worker(self, names[i % len(names)], i) for i in range(options.processes or 2 * len(names))]
        self.faults = [self.pause_node, self.restart_node, self.lose_node, self.starve_node, self.hold_proxy,
                       self.slow_proxy, self.drop_proxy, self.black_hole, self.kill_worker, self.pause_worker]
        if options.guard:
            self.faults += [self.restart_node, self.flush_node, self.evict, self.step_clock]
        if options.guard and options.nodes == "tcp":
            self.spare = Cluster(1, config=DURABLE, bootstrapped=False, **dict(how, server=how["server"].split(",")[5]))
            self.faults.append(self.promote_replica)

    def run(self):
        for worker in self.workers:
            worker.start()
        try:
            while time.monotonic() < self.end_s or self.idle_faces() and time.monotonic() < self.end_s + PATIENCE_S:
                time.sleep(self.every_s * self.random.uniform(0.2, 1.8))
                fault = self.random.choice(self.faults)
                self.log.count("fault: " + fault.__name__.replace("_", " "))
                fault()
                self.look_at_keys(MAX_TTL_MS)
        finally:
            self.over.set()
            for proxy in self.proxies:
                proxy.go()
                proxy.deliver()
            for worker in self.workers:
                worker.join()
        self.settle()
        return checker.check(self.log.records)

    def idle_faces(self):
        return too_little(self.log.counts, {worker.face for worker in self.workers})

    def settle(self):
        """When all is quiet and every TTL and debt has run out, nothing may be left."""
        while self.stepped:
            self.step_clock()
            time.sleep(0.1)
        end_s = time.monotonic() + 3 * MAX_TTL_MS / 1000
        while any(of_a_lock(key) for key in self.cluster.keys()) and time.monotonic() < end_s:
            time.sleep(0.05)
        self.look_at_keys(0)

    def close(self):
        for proxy in self.proxies:
            proxy.close()
        self.cluster.close()
        if self.spare:
            self.spare.close()
        if self.guarded:
            self.folder.cleanup()
        self.log.file.close()
        self.history.close()

    def look_at_keys(self, limit_ms):
        for node in self.cluster:
            try:
                for key in filter(of_a_lock, node.command("KEYS", "*")):
                    at_ms, (token, pttl) = now_ms(), node.command("EVAL", TOKEN_AND_PTTL, 1, key)
                    if token and pttl != -2 and (limit_ms or pttl > 0) or pttl == -1:
                        self.log.write("key", node=node.name, key=key.decode(), token=token.decode(), at_ms=at_ms,
                                       pttl_ms=pttl, limit_ms=limit_ms, gone_ms=GONE_MS)
            except (OSError, ReplyError):
                pass  # it loads its data just now

    # -- faults

    def pause_node(self):
        node = self.random.choice(self.cluster.nodes)
        node.stop()
        time.sleep(self.random.uniform(0.05, 1.5))
        node.cont()

    def restart_node(self):
        node = self.random.choice(self.cluster.nodes)
        restart(node, self.lose_data, self.random.uniform(0, 500))

    def flush_node(self):
        try:
            self.random.choice(self.cluster.nodes).command("FLUSHALL")
        except (OSError, ReplyError):
            pass  # it loads its data just now

    def starve_node(self, policy="noeviction"):
        """It has no memory to set anything."""
        node = self.random.choice(self.cluster.nodes)
        try:
            node.config_set("maxmemory-policy", policy)
            node.config_set("maxmemory", 1)
            time.sleep(self.random.uniform(0.05, 1.2))
            node.config_set("maxmemory", 0)
            node.config_set("maxmemory-policy", "noeviction")
        except (OSError, ReplyError):  # it loads its data just now, and begins with its first configuration
            pass

    def evict(self):
        self.starve_node("allkeys-random")

    def promote_replica(self):
        """A node dies, and its address leads to a replica that lacks what was set last."""
        if self.stepped:  # it would have set keys that live longer on the replica
            return
        index, replica = self.random.randrange(5), self.spare.nodes[0]
        node = self.cluster.nodes[index]
        try:
            if ("valkey_version" in node.info("server")) != ("valkey_version" in replica.info("server")):
                return  # a Redis does not load what a newer Valkey sends
            replica.replica_of(node)
        except (OSError, ReplyError):
            return  # it loads its data just now
        time.sleep(self.random.uniform(0, 0.5))
        replica.replica_of(None)
        time.sleep(self.random.uniform(0, 0.5))
        node.kill()
        self.proxies[index].lead_to(replica)
        self.cluster.nodes[index], self.spare.nodes[0] = replica, node
        node.start()

    def step_clock(self):
        """Of one node, and back when everybody has had the time to notice; keys that were set meanwhile live long.

        By less than max_ttl: fencing numbers stand that much, and no more. By more than a second: a program that
        starts afterwards does not notice less (docs/guard.md).
        """
        if self.stepped is None:
            seconds = self.random.uniform(1.1, 0.95 * MAX_TTL_MS / 1000)
            self.stepped = self.random.choice(self.cluster.nodes), seconds, time.monotonic()
            self.clocks.step(self.stepped[0], self.stepped[1])
        elif time.monotonic() - self.stepped[2] > 2 * MAX_TTL_MS / 1000:
            node, seconds, _ = self.stepped
            self.clocks.step(node, -seconds)
            self.stepped = None
            try:
                node.command("FLUSHALL")
            except (OSError, ReplyError):
                self.stepped = node, 0, 0  # it loads its data just now: later

    def lose_node(self):
        """It comes back without its data once no lock can count its vote any more."""
        restart(self.random.choice(self.cluster.nodes), True, MAX_TTL_MS + 200)

    def hold_proxy(self):
        self.for_a_while(lambda proxy: proxy.hold(self.random.choice([UP, DOWN, BOTH])))

    def slow_proxy(self):
        self.for_a_while(lambda proxy: proxy.delay(self.random.uniform(0, 300), self.random.uniform(0, 300)))

    def black_hole(self):
        self.for_a_while(lambda proxy: (proxy.black_hole(), proxy.drop()))

    def drop_proxy(self):
        """Cut at a byte of a command; what was sent may arrive later."""
        proxy = self.random.choice(self.proxies)
        late = self.random.random() < 0.5
        proxy.at("SET", None, lambda: proxy.drop(late=late), byte=self.random.choice([0, 7, None]),
                 direction=self.random.choice([UP, DOWN]))
        time.sleep(self.random.uniform(0, 1.5))
        proxy.deliver()

    def for_a_while(self, spoil):
        some = self.random.sample(self.proxies, self.random.choice([1, 1, 2, 3]))
        for proxy in some:
            spoil(proxy)
        time.sleep(self.random.uniform(0.05, 1.2))
        for proxy in some:
            proxy.go()

    def kill_worker(self):
        party = self.random.choice(self.workers).party
        if party is not None:
            party.driver.process.kill()

    def pause_worker(self):
        party = self.random.choice(self.workers).party
        if party is not None:
            party.driver.process.send_signal(19)
            time.sleep(self.random.uniform(0.05, 2.5))
            party.driver.process.send_signal(18)


def arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1, help="how long (1)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30), help="of faults and pauses")
    parser.add_argument("--face", action="append", choices=faces.ALL, help="only this face; may be repeated")
    parser.add_argument("--processes", type=int, help="how many (2 of each face)")
    parser.add_argument("--lose-data", action="store_true", help="nodes restart empty: this can let a second holder in")
    parser.add_argument("--guard", action="store_true",
                        help="with the restart guard and fencing numbers; nodes restart empty and are flushed, and "
                             "clocks are stepped, while leases live; keys are evicted, and replicas promoted")
    parser.add_argument("--max-ttl-ms", default=MAX_TTL_MS, help="the clients' max_ttl_ms (%d)" % MAX_TTL_MS)
    parser.add_argument("--every", type=float, default=0.45, metavar="S", help="seconds from fault to fault (0.45)")
    parser.add_argument("--log", help="where the records go (build/soak/log.jsonl)")
    parser.add_argument("--history", help="where the operations for the judge go (build/soak/history.jsonl)")
    variants.add_options(parser.add_argument)
    options = parser.parse_args(argv)
    if options.minutes <= 0:
        parser.error("--minutes %g: allowed are numbers above 0" % options.minutes)
    folder = faces.ROOT / "build/soak"
    folder.mkdir(parents=True, exist_ok=True)
    options.log = options.log or str(folder / "log.jsonl")
    options.history = options.history or str(folder / "history.jsonl")
    return options


def too_little(counts, names):
    """A soak in which a face or a kind of lock never held anything has shown nothing of it."""
    return ["too little work: no hold of " + what for what in [*names, *KINDS] if not counts["holds of " + what]]


def judged(history):
    """What the judge refuses, in its words."""
    status, words = judge(history)
    if status:
        return [words]
    print(words)
    return []


def main(argv=None):
    options = arguments(argv)
    for face in options.face or faces.FACES:
        if faces.missing(face):
            sys.exit("soak: the face %s is required: %s" % (face, faces.missing(face)))
    if not JUDGE.exists():
        sys.exit("soak: the judge is required: %s" % JUDGE)
    if options.server:
        try:
            os.environ["REDLOCK_SERVER"] = variants.servers(options.server)
        except variants.NoServer as reason:
            sys.exit("soak: %s" % reason)
    soak = Soak(options)
    print("soak: seed %d, %d processes, %g minutes" % (soak.seed, len(soak.workers), options.minutes), flush=True)
    try:
        violations = soak.run()
    finally:
        soak.close()
    for what, count in sorted(soak.log.counts.items()):
        print("%8d  %s" % (count, what))
    print("%8d  records in %s" % (len(soak.log.records), options.log))
    violations += too_little(soak.log.counts, options.face or faces.FACES)
    violations += judged(options.history)
    print("\n".join(violations) or "no violation")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
