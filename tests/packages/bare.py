"""Bare containers: a minimal Debian in a folder, and a copy-on-write layer on it for each test."""
import os
import re
import shlex
import shutil
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path

from testing import eventually

SUITE = re.search(r"^VERSION_CODENAME=(\w+)", Path("/etc/os-release").read_text(), re.M)
SETTINGS = """\
APT::Get::Assume-Yes "true";
APT::Install-Recommends "false";
APT::Keep-Downloaded-Packages "true";
Acquire::Retries "3";
"""
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# For the command, on a machine that is busy.
PATIENT = {"REDLOCK_CONNECT_TIMEOUT_MS": "20000", "REDLOCK_NODE_TIMEOUT_MS": "2000"}
CERTIFICATES = "/run/host-certificates.crt"
BOOT = """\
mount -t proc proc /proc
mount -t tmpfs none /run
mount -t cgroup2 none /sys/fs/cgroup
mkdir /sys/fs/cgroup/GROUP
echo $$ >/sys/fs/cgroup/GROUP/cgroup.procs
exec unshare --cgroup sh -ec '
  umount /sys/fs/cgroup
  mount -t cgroup2 none /sys/fs/cgroup
  exec systemd-nspawn --quiet --register=no --keep-unit --resolv-conf=off --boot --directory="$1"
' sh "$1"
"""
ALONE = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"]


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    assert done.returncode == 0, f"{shlex.join(map(str, command))[:2000]}\nended with {done.returncode}\n" \
                                 f"{done.stdout[-6000:]}"
    return done.stdout


def impossible():
    """Why there can be no container here, or None."""
    probe = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "mount", "-t", "tmpfs", "none", "/mnt"]
    if os.geteuid() != 0 or subprocess.run(probe, capture_output=True).returncode != 0:
        return "no chroot can be made here"
    return None


def sources():
    """Where this machine gets its own packages from, as lines of sources.list: the suite, its updates, its security."""
    for path in [*Path("/etc/apt/sources.list.d").glob("*.sources"), Path("/etc/apt/sources.list")]:
        text = path.read_text() if path.exists() else ""
        entries = re.findall(r"^URIs: (\S+)\nSuites: (.*)$", text, re.M)
        entries += re.findall(r"^deb (?:\[.*?\] )?(\S+) (\S+) ", text, re.M)
        for uri, suites in entries:
            yield from (f"deb {uri} {name} main" for name in suites.split() if name.split("-")[0] == SUITE.group(1))


def mirror():
    """That of the suite itself."""
    for line in sources():
        _, uri, name, _ = line.split()
        if name == SUITE.group(1):
            return uri
    raise LookupError(f"no entry for {SUITE.group(1)} in /etc/apt")


def make_base(folder, packages):
    """Debian with nothing but apt; PACKAGES are downloaded, once for all containers, but not installed."""
    run("debootstrap", "--variant=minbase", SUITE.group(1), folder, mirror())
    (folder / "etc/apt/sources.list").write_text("".join(f"{line}\n" for line in sources()))
    (folder / "etc/apt/apt.conf.d/90bare").write_text(SETTINGS)
    (folder / "etc/dpkg/dpkg.cfg.d/90fast").write_text("force-unsafe-io\n")
    shutil.copy("/etc/resolv.conf", folder / "etc/resolv.conf")
    base = Container(folder)
    base.run("apt-get update && apt-get --download-only install " + " ".join(sorted(packages)))


class Container:
    """A root to run scripts in. What a script starts ends with it."""

    def __init__(self, root, above=None):
        self.root = Path(root)
        self.layers = above and {name: Path(above, name) for name in ("upper", "work", "merged")}
        for layer in (self.layers or {}).values():
            layer.mkdir(parents=True)

    def path(self, inside):
        """A file of the container, to be read or written while nothing runs in it."""
        return Path(self.layers["upper"] if self.layers else self.root, inside.lstrip("/"))

    def mounts(self):
        root = shlex.quote(str(self.layers["merged"] if self.layers else self.root))
        if self.layers:
            layers = f"lowerdir={self.root},upperdir={self.layers['upper']},workdir={self.layers['work']}"
            yield f"mount -t overlay overlay -o {shlex.quote(layers)} {root}"
        yield f"mount -t proc proc {root}/proc"
        yield f"mount --rbind /dev {root}/dev"
        yield f"cd / && exec chroot {root} \"$@\""

    def run(self, script, folder="/", **environment):
        """Runs it with bash -e, as somebody would who types its lines; returns what it said."""
        environment = {"PATH": PATH, "HOME": "/root", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive",
                       "TERM": "dumb", **environment}
        if os.environ.get("PIP_CERT"):
            environment["PIP_CERT"] = CERTIFICATES
            if self.layers:
                self.path(CERTIFICATES).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(os.environ["PIP_CERT"], self.path(CERTIFICATES))
        inside = ["env", "-i", *(f"{name}={value}" for name, value in environment.items()),
                  "bash", "-ec", f"cd {shlex.quote(folder)}\n{script}"]
        return run(*ALONE, "sh", "-ec", "\n".join(self.mounts()), "sh", *inside)

    @contextmanager
    def booted(self):
        """With systemd as its first process. Gives what runs a script in it; ends when the block ends."""
        group, log = f"redlock-{os.getpid()}", Path(self.layers["upper"], "../boot.log")
        overlay, *_ = self.mounts()
        steps = f"{overlay}\n{BOOT}".replace("GROUP", group)
        with open(log, "w") as out:
            process = subprocess.Popen([*ALONE, "sh", "-ec", steps, "sh", self.layers["merged"]],
                                       stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        try:
            first = first_process(process, log)
            clean = ["env", "-i", f"PATH={PATH}", "LC_ALL=C.UTF-8"]
            inside = ["nsenter", f"--target={first}", "--all", *clean, "bash", "-ec"]
            yield lambda script: run(*inside, script)
            subprocess.run([*inside, "systemctl poweroff"], capture_output=True)
            process.wait(60)
        finally:
            process.kill()
            process.wait()
            run("unshare", "--mount", "sh", "-ec", f"mount -t cgroup2 none /mnt && cd /mnt && "
                f"for i in $(seq 100); do find {group} -depth -type d -exec rmdir {{}} + && exit; sleep 0.1; done")


def first_process(process, log):
    """The pid of systemd in there, once it has started what it starts at boot."""

    def below(pid):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield child
            yield from below(child)

    def running():
        assert process.poll() is None, log.read_text()
        with suppress(FileNotFoundError, ProcessLookupError):  # a process that has ended meanwhile
            for pid in below(process.pid):
                if Path(f"/proc/{pid}/comm").read_text() == "systemd\n":
                    ask = ["nsenter", f"--target={pid}", "--all", "systemctl", "is-system-running", "--wait"]
                    asked = subprocess.run(ask, capture_output=True, text=True)
                    return pid if asked.stdout.strip() in ("running", "degraded") else None

    return eventually(running, 60, "systemd has started")
