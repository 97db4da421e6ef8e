"""The files of deploy/nodes: servers that are started from them vote, and stay so through rolling restarts."""
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from conftest import ROOT
from pages import blocks, section
from testing import eventually, free_port
from testing.process import Child

NODES = ROOT / "deploy/nodes"
BIN = Path(os.environ.get("REDLOCK_BUILD_DIR", ROOT / "build/dev"))
LIMIT_S = 60
MAX_TTL_S = 6  # the quarantine of a node, and the longest lease


def manifests():
    return {one["kind"]: one for one in yaml.safe_load_all((NODES / "statefulset.yaml").read_text())}


class Server:
    """A node from a configuration of deploy/nodes, with another port and another folder."""

    def __init__(self, folder, conf, server="redis-server", address="127.0.0.1"):
        self.folder, self.server, self.port = folder, server, free_port()
        folder.mkdir()
        shutil.copy(NODES / "users.acl", folder)
        for name, value in ("bind", address), ("port", self.port), ("dir", folder):
            conf = re.sub(rf"^{name} .*", f"{name} {value}", conf, flags=re.M)
        conf = re.sub("/etc/redlock-node|/var/lib/redlock-node", str(folder), conf)
        (folder / "node.conf").write_text(conf)

    def start(self):
        self.child = Child([self.server, "node.conf"], cwd=self.folder, stdout=subprocess.DEVNULL)
        ping = ["redis-cli", "-p", str(self.port), "ping"]
        answers = (b"PONG", b"NOAUTH")
        eventually(lambda: subprocess.run(ping, capture_output=True).stdout.startswith(answers), LIMIT_S, "it answers")

    def restart(self):
        self.child.process.terminate()
        self.child.process.wait(LIMIT_S)
        self.start()


@pytest.fixture
def start(tmp_path):
    """start(conf): three nodes from it."""
    servers = []

    def started(conf, **how):
        servers.extend(Server(tmp_path / str(i), conf, **how) for i in range(3))
        for server in servers:
            server.start()
        return servers

    yield started
    for server in servers:
        server.child.end()


def environment(servers, login="", number=""):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("REDLOCK_")}
    urls = ",".join(f"redis://{login}127.0.0.1:{server.port}" for server in servers)
    return {**clean, "PATH": f"{BIN}:{clean['PATH']}", "REDLOCK_NODES": urls + number, "REDLOCK_CONFIG": "",
            "REDLOCK_EXIT_DRAIN_MS": "2000"}


def redlock(env, *words):
    return subprocess.run(["redlock", *words], env=env, capture_output=True, text=True, timeout=LIMIT_S)


def held(env, resource):
    """The token, and how many nodes have it; without regard to the guard."""
    told = json.loads(redlock(env, "status", "--json", resource).stdout)
    tokens = [node.get("token") for node in told["nodes"]]
    return told["verdict"] == "held" and (told["holder"], tokens.count(told["holder"]))


def test_nodes_of_the_files_vote_and_keep_locks(start):
    """A renewed lock goes on though all of them were restarted and none votes yet. What a script wrote is there again,
    too: Redis reads it as the default user."""
    servers = start((NODES / "node.conf").read_text())
    env, operator = environment(servers, "app:change-me@"), environment(servers, "operator:change-me-too@")
    assert redlock(env, "bootstrap", "--new").returncode == 0
    token = redlock(env, "acquire", "--ttl", "30s", "kept").stdout.strip()
    shared = redlock(operator, "acquire", "--shared", "--ttl", "30s", "shared").stdout.strip()
    table = redlock(env, "doctor", "-v")
    assert table.returncode == 0 and table.stdout.count("noeviction") == 3, table.stdout + table.stderr
    renewed = subprocess.Popen(["redlock", "run", "--ttl", "10s", "renewed", "--", "sleep", "1000"], env=env)
    eventually(lambda: held(env, "renewed"), LIMIT_S, "it has the lock")
    try:
        for server in servers:
            server.restart()
            assert held(env, "kept") == (token, 3), "every node has the key again"
        told = json.loads(redlock(operator, "status", "--json", "shared").stdout)
        assert told["verdict"] == "shared" and str(told["nodes"]).count(shared) == 3, told
        assert redlock(env, "run", "-n", "free", "--", "true").returncode == 69, "no node votes"
        eventually(lambda: redlock(env, "doctor").returncode == 0, LIMIT_S, "all vote, after several renewals")
        assert renewed.poll() is None
    finally:
        renewed.terminate()
        renewed.wait()


OTHER_MACHINE = """
ip link set lo up
ip address add 10.0.0.1/32 dev lo
redis-server node.conf >log &
until redis-cli -h 10.0.0.1 -p "$1" ping >&2; do kill -0 $!; done
redis-cli -s node.sock ping  # the health check of the compose file
redlock bootstrap --new
redlock run locked -- echo locked
"""


def test_other_machines_reach_the_node_of_the_file(tmp_path):
    """In a network of its own, whose address is not the loopback's: protected mode would let nobody in."""
    node = Server(tmp_path / "node", (NODES / "node.conf").read_text(), address="10.0.0.1")
    env = {**environment([]), "REDLOCK_NODES": f"redis://app:change-me@10.0.0.1:{node.port}"}
    alone = ["unshare", "--map-root-user", "--net", "--pid", "--fork", "--kill-child"]
    done = subprocess.run([*alone, "sh", "-ec", OTHER_MACHINE, "sh", str(node.port)], env=env, cwd=node.folder,
                          capture_output=True, text=True, timeout=LIMIT_S)
    said = f"NOAUTH Authentication required.\n\n10.0.0.1:{node.port}: registered; it votes\nlocked\n"
    assert done.stdout == said, done.stdout + done.stderr


def test_users_of_the_files_are_those_of_the_page():
    """A user who locks, with the line of the page; the default one is whom Redis reads its files as, and nobody is."""
    (line, *_) = [block.text for block in blocks(section("docs/redlock.md", "Permissions")) if "user app" in block.text]
    shown = re.search(r"-@all .*", line)[0]
    users = dict(re.findall(r"^user (\S+) (.*)$", (NODES / "users.acl").read_text(), re.M))
    assert set(users) == {"default", "app", "operator"} and users["app"].endswith(shown)
    assert users["default"] == "off resetpass ~* &* +@all"


def test_the_unit_and_the_compose_file_start_the_same_node(tmp_path):
    unit = (NODES / "redlock-node.service").read_text()
    node = yaml.safe_load((NODES / "compose.yaml").read_text())["services"]["node"]
    assert "/etc/redlock-node/node.conf --supervised systemd" in unit and unit.count("\nType=notify\n") == 1
    assert node["command"] == ["redis-server", "/etc/redlock-node/node.conf"]
    assert node["volumes"] == [".:/etc/redlock-node", "data:/var/lib/redlock-node"]
    conf = dict(line.split(" ", 1) for line in (NODES / "node.conf").read_text().splitlines()
                if line and line[0] != "#")
    assert conf["dir"] == node["working_dir"], "the image gives its user that folder, and no other"
    assert conf["unixsocket"] in node["healthcheck"]["test"]
    assert conf["dir"] == "/var/lib/redlock-node" and conf["aclfile"] == "/etc/redlock-node/users.acl"
    assert int(re.search(r"^LimitNOFILE=(\d+)", unit, re.M)[1]) > int(conf["maxclients"]) + 32
    shutil.copy(NODES / "redlock-node.service", tmp_path)
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", tmp_path / "redlock-node.service"],
                          capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


class Pods:
    """What Kubernetes does: it asks the probe, and takes the next pod when one was ready for a time."""

    def __init__(self, servers, folder):
        self.servers, self.env = servers, environment(servers, number=f"?max_ttl={MAX_TTL_S}s")
        containers = manifests()["StatefulSet"]["spec"]["template"]["spec"]["containers"]
        (self.probe,) = [one["readinessProbe"]["exec"]["command"] for one in containers if "readinessProbe" in one]
        script = manifests()["ConfigMap"]["data"]["votes.sh"].replace("$POD.redlock-node:6379", "$POD")
        (folder / "votes.sh").write_text(script)
        self.probe = [word.replace("/etc/redlock-node", str(folder)) for word in self.probe]
        longest_s, waited_s = 30, manifests()["StatefulSet"]["spec"]["minReadySeconds"]
        self.min_ready_s = MAX_TTL_S * waited_s / longest_s

    def is_ready(self, server):
        env = {**self.env, "POD": f"127.0.0.1:{server.port}"}
        return subprocess.run(self.probe, env=env, capture_output=True, timeout=LIMIT_S).returncode == 0

    def stay_ready(self, server):
        eventually(lambda: self.is_ready(server), LIMIT_S, "its node votes")
        end = time.monotonic() + self.min_ready_s
        while time.monotonic() < end:
            assert self.is_ready(server)


@pytest.fixture
def pods(start, tmp_path):
    return Pods(start(manifests()["ConfigMap"]["data"]["node.conf"]), tmp_path)


def test_a_rolling_update_of_the_statefulset_stops_no_lock(pods):
    """One lock is held all along, short ones are taken and given back: none is refused, and the holder goes on."""
    for server in pods.servers:
        eventually(lambda server=server: pods.is_ready(server), LIMIT_S, "new nodes vote without bootstrap")
    holder = subprocess.Popen(["redlock", "run", "--ttl", f"{MAX_TTL_S}s", "held", "--", "sleep", "1000"], env=pods.env,
                              stderr=subprocess.PIPE)
    ended, codes = threading.Event(), []

    def short_jobs():
        while not ended.is_set():
            codes.append(redlock(pods.env, "run", "--wait", "3s", "--ttl", "3s", "short", "--", "true").returncode)

    jobs = threading.Thread(target=short_jobs)
    jobs.start()
    try:
        for server in pods.servers:
            server.restart()
            assert not pods.is_ready(server), "it is quarantined"
            pods.stay_ready(server)
        assert holder.poll() is None
    finally:
        ended.set()
        jobs.join()
        holder.terminate()
        said = holder.communicate()[1]
    assert set(codes) == {0} and len(codes) > 10 and said == b"", (codes, said)


def test_no_container_delays_the_end_of_its_pod():
    """The kernel hands a first process no signal that it does not ask for."""
    command = manifests()["StatefulSet"]["spec"]["template"]["spec"]["containers"][1]["command"]
    first = Child(["unshare", "--map-root-user", "--pid", "--fork", "--kill-child", *command])
    children = Path(f"/proc/{first.pid}/task/{first.pid}/children")
    (child,) = eventually(lambda: children.read_text().split(), LIMIT_S, "it runs")

    def ended():
        with suppress(ProcessLookupError):
            os.kill(int(child), signal.SIGTERM)
        return not first.alive

    eventually(ended, 10, "it ends")


def test_the_statefulset_keeps_what_it_promises():
    """One node at a time is away, each is on a machine of its own, and programs reach those that do not vote yet."""
    made = manifests()
    spec, name = made["StatefulSet"]["spec"], made["Service"]["metadata"]["name"]
    assert made["Service"]["spec"]["publishNotReadyAddresses"] is True and spec["serviceName"] == name
    assert made["PodDisruptionBudget"]["spec"]["maxUnavailable"] == 1
    assert spec["template"]["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    listed = made["ConfigMap"]["data"]["nodes"].split(",")
    assert listed == [f"redis://{made['StatefulSet']['metadata']['name']}-{i}.{name}" for i in range(spec["replicas"])]
