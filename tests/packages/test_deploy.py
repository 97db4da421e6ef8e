"""What deploy/ has for operators is right by its own rules, and what it runs does what docs/deploy.md says."""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from bare import PATIENT, run
from conftest import BARE, ROOT
from dockerfile import Image, instructions
from pages import typed
from testing import Cluster, eventually, free_port
from testing.process import Child

sys.path.append(str(ROOT / "tests/live"))

from tls import Authority  # noqa: E402

DEPLOY = ROOT / "deploy"
TOOLS = ROOT / "build/venv-deploy/bin"
BILLING = """#!/bin/sh
trap 'echo $NAME ends >>/tmp/said; exit 0' TERM
echo $NAME begins >>/tmp/said
sleep 86400 & wait
"""
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml")) + [DEPLOY / "nodes/statefulset.yaml"]
WORKER = "#!/bin/sh\nsetsid sleep 86400 &\nexec sleep 86400\n"  # and a process out of redlock's reach

pytestmark = pytest.mark.timeout(900)


def holder(nodes, resource):
    """The token that a majority has under the key."""
    tokens = [node.get(resource) for node in nodes.nodes]
    return next((token for token in tokens if token and tokens.count(token) > len(tokens) // 2), None)


def tool(name):
    path = TOOLS / name
    assert path.exists(), f"{path} is not there: ./dev test packages installs it (tests/packages/requirements.txt)"
    return path


def program(container, name, text):
    path = container.path(f"/usr/local/bin/{name}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


# ---- the image ------------------------------------------------------------------------------------------------


@pytest.fixture
def image(base, tracked):
    above = BARE / "image"
    shutil.rmtree(above, ignore_errors=True)
    for name in tracked:
        target = above / "context" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target, follow_symlinks=False)
    yield Image(DEPLOY / "Dockerfile", above / "context", base, above)
    shutil.rmtree(above)


def test_hadolint_has_no_complaint():
    assert run(tool("hadolint"), DEPLOY / "Dockerfile") == ""
    assert {".git", "build"} <= set((DEPLOY / "Dockerfile.dockerignore").read_text().split())


@pytest.mark.one_of("document", "docs/deploy.md", "deploy/Dockerfile")
def test_the_image_runs_all_that_deploy_md_shows(image, nodes, version):
    """One test, because the image takes a minute to build."""
    the_image(image, nodes, version)
    an_image_of_a_user(image, nodes)
    one_replica_is_active(image, nodes)
    the_cron_job_runs_once(image, nodes)


def the_image(image, nodes, version):
    assert image.run("--version") == f"redlock {version}\n"
    for file in "/usr/local/bin/redlock", "/usr/local/lib/libredlock.so.0":
        its = run("readelf", "-WldsD", image.container.path(file).resolve())
        assert "GNU_RELRO" in its and re.search(r"BIND_NOW|Flags: .*NOW", its) and "__stack_chk_fail" in its, file
    build, start = typed("docs/deploy.md", "A container image").splitlines()
    assert build == "docker build -f deploy/Dockerfile -t redlock ."
    _, arguments = start.split(" redlock ")
    said = image.run(*arguments.split(), REDLOCK_NODES=nodes.nodes_env, **PATIENT)
    assert said.endswith("\nall 3 nodes may vote\n")
    look = "id -u; redlock status --json image"
    said = image.run("run", "image", "--", "sh", "-c", look, REDLOCK_NODES=nodes.nodes_env, **PATIENT)
    assert said.startswith("65532\n") and '"verdict":"held"' in said
    nodes.no_keys()
    assert image.container.run("command -v cc gcc cmake || ls -d /src /build 2>/dev/null || true") == ""


def an_image_of_a_user(image, nodes):
    """The Dockerfile of the page, whose base is that image."""
    lines = dict(instructions(typed("docs/deploy.md", "A container image", "dockerfile")))
    assert lines["FROM"] == "redlock"
    program(image.container, lines["COPY"].split()[0], "#!/bin/sh\necho ran under $REDLOCK_RESOURCE\n")
    image.do_entrypoint(lines["ENTRYPOINT"])
    assert image.run(REDLOCK_NODES=nodes.nodes_env) == "ran under import-worker\n"
    nodes.no_keys()


# ---- Kubernetes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_manifests_fit_the_schemas_of_kubernetes(path):
    run(tool("kubernetes-validate"), "--strict", path)
    pages = typed("docs/deploy.md", "Kubernetes") + typed("docs/nodes.md", "Ready files")
    assert f"kubectl apply -f {path.relative_to(ROOT)}\n" in pages


def pod(name, image, nodes):
    """The line that the container of a manifest runs, as user of the image and with the Secret in its place."""
    manifest = yaml.safe_load((DEPLOY / f"kubernetes/{name}.yaml").read_text())
    spec = manifest["spec"].get("jobTemplate", manifest)["spec"]["template"]["spec"]
    (container,), (volume,) = spec["containers"], spec["volumes"]
    secret = yaml.safe_load((DEPLOY / "kubernetes/nodes.yaml").read_text())
    (mount,) = container["volumeMounts"]
    assert volume["name"] == mount["name"] and volume["secret"]["secretName"] == secret["metadata"]["name"]
    folder = image.container.path(mount["mountPath"])
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in secret["stringData"].items():
        (folder / file).write_text(re.sub(r"^nodes = .*", f"nodes = {nodes.nodes_env}", text, flags=re.M))
        (folder / file).chmod(volume["secret"]["defaultMode"])
        os.chown(folder / file, 0, spec["securityContext"]["fsGroup"])
    environment = [f"{entry['name']}={entry['value']}" for entry in container["env"]]
    return shlex.join(["env", *environment]) + " " + image.command(*container["command"], *container["args"])


def allow_what_the_secret_says(nodes):
    """As an operator who has given all programs the number."""
    secret = yaml.safe_load((DEPLOY / "kubernetes/nodes.yaml").read_text())
    number = re.search(r"^max_ttl_ms = (\d+)$", secret["stringData"]["redlock.conf"], re.M)[1]
    command = Path(os.environ.get("REDLOCK_BUILD_DIR", ROOT / "build/dev")) / "redlock"
    run(command, "bootstrap", "--replace", "--yes",
        env={**os.environ, **PATIENT, "REDLOCK_NODES": nodes.nodes_env, "REDLOCK_MAX_TTL_MS": number})


def the_cron_job_runs_once(image, nodes):
    allow_what_the_secret_says(nodes)
    line = pod("nightly-report", image, nodes)
    program(image.container, "nightly-report", "#!/bin/sh\nexit 3\n")
    assert image.container.run(f"{line} || echo $?") == "3\n"  # the job has failed, and the lock is free
    nodes.no_keys()
    program(image.container, "nightly-report", "#!/bin/sh\necho reported\n")
    assert image.container.run(line) == "reported\n"
    impatient = line.replace("--ttl", "--wait 1s --ttl")
    says = "redlock: held by libredlock (pid "  # another pod, done as well; it may take several attempts to learn it
    eventually(lambda: image.container.run(impatient).startswith(says), 60, says)
    assert sum(540_000 < node.pttl("nightly-report") <= 601_000 for node in nodes.nodes) >= nodes.quorum


def one_replica_is_active(image, nodes):
    """The second takes over when the first is stopped, and leaves no key when it is stopped itself."""
    line = pod("billing", image, nodes)
    program(image.container, "billing", BILLING)
    said = image.container.run(f"""
        eventually() {{ for _ in {{1..600}}; do eval "$1" && return; sleep 0.1; done; echo "never $1"; exit 1; }}
        >/tmp/said; chmod 666 /tmp/said
        NAME=one exec {line} & one=$!
        eventually 'grep -q "one begins" /tmp/said'
        NAME=two exec {line} & two=$!
        asks() {{ [ $(ls -l /proc/$two/fd 2>/dev/null | grep -c socket:) -ge {len(nodes.nodes)} ]; }}
        eventually asks
        kill $one; wait $one
        eventually 'grep -q "two begins" /tmp/said'
        kill $two; wait $two
        cat /tmp/said""")
    assert said == "one begins\none ends\ntwo begins\ntwo ends\n"
    nodes.no_keys()


# ---- systemd --------------------------------------------------------------------------------------------------


@pytest.fixture
def machine(container, made, nodes):
    """A bare Debian with systemd running in it, and the packages and the nodes that the units expect."""
    container.path("/srv").mkdir(exist_ok=True)
    for name in "libredlock0", "redlock-tools":
        (path,) = made.glob(f"{name}_*.deb")
        shutil.copy(path, container.path("/srv"))
    container.run("apt-get update && apt-get install systemd /srv/*.deb")
    container.path("/etc/redlock.conf").write_text(f"nodes = {nodes.nodes_env}\n")
    container.path("/etc/redlock.conf").chmod(0o600)
    program(container, "import-worker", WORKER)
    program(container, "nightly-report", "#!/bin/sh\necho reported\n")
    with container.booted() as script:
        script(typed("docs/deploy.md", "systemd"))
        yield script


def processes(script, unit):
    return sorted(script(f"cat $(sed 's|.*|/proc/&/comm|' /sys/fs/cgroup/system.slice/{unit}/cgroup.procs)").split())


def shown(script, unit, *properties):
    names = ",".join(properties)
    return script(f"systemctl show --property {names} {unit}").split()


def journal(script, unit):
    return script(f"journalctl --unit {unit} --output cat")


def test_systemd_runs_the_units(machine, nodes):
    machine("mv /usr/bin/redlock /usr/local/bin")  # where README's lines put it; in the other test it is the package's
    said = machine("systemd-analyze verify --man=no /etc/systemd/system/{import-worker,nightly-report}.*")
    assert said == ""
    the_worker_comes_back(machine, nodes)
    the_report_runs_once(machine, nodes)


@pytest.fixture
def secured(tmp_path):
    """Nodes with TLS, certificates of clients and a password, and the files for it by the names of the page."""
    authority = Authority(tmp_path)
    server, client = authority.issue(), authority.issue()
    with Cluster(3, password="s3cret", tls=server) as cluster:
        yield cluster, {"redlock-ca.pem": client.ca_file, "redlock-cert.pem": client.cert_file,
                        "redlock-key.pem": client.key_file}


def test_units_have_the_password_and_the_files_of_tls(machine, secured):
    """As files of mode 600 that their user cannot read."""
    cluster, files = secured
    urls = ",".join(f"rediss://{node.name}" for node in cluster)
    options = "user_file = redlock.user\npassword_file = redlock.password\ntls_ca_file = redlock-ca.pem\n" \
              "tls_cert_file = redlock-cert.pem\ntls_key_file = redlock-key.pem\n"
    contents = {"redlock.conf": f"nodes = {urls}\n{options}", "redlock.user": "default\n",
                "redlock.password": "s3cret\n", **{name: Path(path).read_text() for name, path in files.items()}}
    for name, text in contents.items():
        machine(f"umask 077; cat >/etc/{name} <<'END'\n{text}END")
    machine(typed("docs/deploy.md", "Passwords and TLS files"))
    eventually(lambda: holder(cluster, "import-worker"), 60, "the worker has the lock")
    said = journal(machine, "import-worker.service")
    assert "DynamicUser=yes" in shown(machine, "import-worker.service", "DynamicUser") and "readable by" not in said
    assert machine("redlock status import-worker").splitlines()[-1].startswith("held: "), "the same file for the shell"


def the_worker_comes_back(script, nodes):
    unit = "import-worker.service"
    first = eventually(lambda: holder(nodes, "import-worker"), 60, "the worker has the lock")
    eventually(lambda: processes(script, unit).count("sleep") == 2, 60, "the worker runs")
    for node in nodes.nodes:
        node.command("DEL", "import-worker")
    eventually(lambda: holder(nodes, "import-worker") not in (None, first), 60, "it has the lock again")
    assert "status=76" in journal(script, unit)
    assert "NRestarts=1" in shown(script, unit, "NRestarts")
    one_each = ["redlock", "redlock-guard", "sleep", "sleep"]
    eventually(lambda: processes(script, unit) == one_each, 60, "only the new ones run")
    script(f"systemctl stop {unit}")
    assert shown(script, unit, "ActiveState", "Result") == ["Result=success", "ActiveState=inactive"]
    assert holder(nodes, "import-worker") is None
    assert script("grep -lsx sleep /proc/[0-9]*/comm || true") == ""


def the_report_runs_once(script, nodes):
    unit = "nightly-report.service"
    assert "NextElapseUSecRealtime=" in script("systemctl show --property NextElapseUSecRealtime nightly-report.timer")
    script("""mkdir -p /etc/systemd/system/nightly-report.timer.d /etc/systemd/system/nightly-report.service.d
              printf '[Service]\\nEnvironment=REDLOCK_WAIT_MS=1000\\n' \\
                  >/etc/systemd/system/nightly-report.service.d/wait.conf
              printf '[Timer]\\nOnActiveSec=0\\n' >/etc/systemd/system/nightly-report.timer.d/now.conf
              systemctl daemon-reload; systemctl restart nightly-report.timer""")
    eventually(lambda: journal(script, unit).count("reported") == 1, 60, "the timer has started the report")
    eventually(lambda: "ActiveState=inactive" in shown(script, unit, "ActiveState"), 60, "the report has ended")
    assert sum(0 < node.pttl("nightly-report") <= 21_000 for node in nodes.nodes) >= nodes.quorum
    script(f"systemctl start {unit}")  # as another host would
    eventually(lambda: "ExecMainStatus=75" in shown(script, unit, "ExecMainStatus"), 60, "the second has ended")
    assert shown(script, unit, "ActiveState", "Result") == ["Result=success", "ActiveState=inactive"]
    assert journal(script, unit).count("reported") == 1
    script(f"echo 'nodes = redis://127.0.0.1:{free_port()}' >/etc/redlock.conf; systemctl start {unit}")
    waiting = ["ExecMainStatus=69", "SubState=auto-restart"]
    eventually(lambda: shown(script, unit, "ExecMainStatus", "SubState") == waiting, 60, "it waits for another try")


# ---- compose --------------------------------------------------------------------------------------------------


def on_port(words, port):
    """A command line of the compose file with another port."""
    return [str(port) if word == "6379" else word for word in words]


def started(service, port, folder):
    """A node of the compose file, when its health check succeeds."""
    folder.mkdir(exist_ok=True)
    server = Child(on_port(service["command"], port), cwd=folder, stdout=subprocess.DEVNULL)
    kind, *check = on_port(service["healthcheck"]["test"], port)
    assert kind == "CMD"
    eventually(lambda: subprocess.run(check, capture_output=True).stdout == b"PONG\n", 60)
    return server


def bootstrapped_by(service, ports):
    """What the service says, with the nodes at these ports."""
    assert service["build"]["dockerfile"] == "deploy/Dockerfile"
    nodes = re.sub(r"node(\d):6379", lambda found: f"127.0.0.1:{ports[int(found.group(1)) - 1]}",
                   service["environment"]["REDLOCK_NODES"])
    clean = {name: value for name, value in os.environ.items() if not name.startswith("REDLOCK_")}
    path = Path(os.environ.get("REDLOCK_BUILD_DIR", ROOT / "build/dev")) / "redlock"
    done = subprocess.run([path, *service["command"]], env={**clean, "REDLOCK_NODES": nodes}, capture_output=True,
                          text=True)
    return done.returncode, done.stdout


def test_compose_starts_nodes_that_may_vote(tmp_path):
    """Their command lines as they are written there, and the lines of the page; and all of it once more."""
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    bootstrap = compose["services"].pop("bootstrap")
    services = compose["services"].values()
    ports = [free_port() for _ in services]
    assert len({service["volumes"][0] for service in services}) == len(compose["volumes"]) == 5
    assert [service["ports"] for service in services] == [[f"127.0.0.1:{7000 + i}:6379"] for i in range(1, 6)]
    assert bootstrap["depends_on"] == {name: {"condition": "service_healthy"} for name in compose["services"]}
    said = []
    for _ in "up", "down and up":
        servers = []
        try:
            for service, port in zip(services, ports):
                servers.append(started(service, port, tmp_path / str(port)))
            said.append(bootstrapped_by(bootstrap, ports))
            if len(said) == 1:
                typed_lines = typed("docs/deploy.md", "Nodes to try it on").splitlines()
                lines = [line for line in typed_lines if not line.startswith("docker ")]
                text = re.sub(r":700(\d)", lambda found: f":{ports[int(found.group(1)) - 1]}", "\n".join(lines))
                (tmp_path / "typed").write_text(text)
                table = on_terminal(tmp_path)
        finally:
            for server in servers:
                server.end()
    (code, first), (code_again, again) = said
    assert code == 0 and first.count(": registered") == 5
    assert code_again in (0, 78) and ": registered" not in again  # restarted nodes wait, since they may have lost keys
    assert table.endswith("\nall 5 nodes may vote\n")
    rows = [line.split() for line in table.splitlines() if re.match(r"127\.0\.0\.1:\d+ ", line)]
    assert len(rows) == 5 and all({"yes", "marker"} <= set(row) for row in rows)


def on_terminal(folder):
    """The output of `typed` on a terminal. Nothing there asks a question: what answers it might be shown last."""
    path = f"{os.environ.get('REDLOCK_BUILD_DIR', ROOT / 'build/dev')}:{os.environ['PATH']}"
    clean = {name: value for name, value in os.environ.items() if name != "REDLOCK_GUARD"}
    done = subprocess.run(["script", "-qec", "bash -e typed", "/dev/null"], cwd=folder, stdin=subprocess.DEVNULL,
                          check=True, capture_output=True, env={**clean, "PATH": path, "NO_COLOR": "1"})
    return done.stdout.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("command", [("check", "rules", "deploy/prometheus/redlock.rules.yml"),
                                     ("test", "rules", "tests/packages/redlock.rules-test.yml")])
def test_promtool_accepts_the_alerts(command):
    subprocess.run(["promtool", *command], cwd=ROOT, check=True)


def test_alerts_and_dashboard_use_metrics_that_exist():
    """And every alert is explained."""
    page = (ROOT / "docs/metrics.md").read_text()
    known = {name + suffix for name in re.findall(r"^\| `(redlock_\w+)`", page, re.M) for suffix in ("", "_bucket")}
    rules = (ROOT / "deploy/prometheus/redlock.rules.yml").read_text()
    dashboard = json.loads((ROOT / "deploy/grafana/redlock.json").read_text())
    shown = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    for text in re.findall(r"expr: (.*?)\n        (?:for|labels)", rules, re.S) + shown:
        assert set(re.findall(r"redlock_\w+", text)) - known == set()
    explained = re.findall(r"^\| `(Redlock\w+)`", (ROOT / "docs/alerts.md").read_text(), re.M)
    assert re.findall(r"- alert: (\w+)", rules) == explained and len(explained) == 12
