"""Folders with packages of another architecture or release, unpacked. apt-get fetches them with lists of its own, made
from this machine's entries, and checks signatures; nothing of the system changes."""
import shlex
import shutil
import subprocess

import bare
import source_package

CHROOT = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"]


class Root:
    def __init__(self, folder, suite, architecture, packages):
        self.folder, self.suite, self.architecture, self.path = folder, suite, architecture, folder / "root"
        ready = folder / "ready"
        wanted = " ".join(sorted(packages))
        if not ready.exists() or ready.read_text() != wanted:
            shutil.rmtree(self.path, ignore_errors=True)
            self.download(sorted(packages))
            self.unpack()
            ready.write_text(wanted)

    def sources(self):
        own = source_package.os_release().get("VERSION_CODENAME", "")
        for entry in source_package.entries():
            if own in entry["suites"].split():
                fields = {"Types": "deb", "URIs": entry["uris"], "Suites": self.suite,
                          "Components": entry["components"], "Signed-By": entry.get("signed-by")}
                yield "".join(f"{name}: {value}\n" for name, value in fields.items() if value)

    def download(self, packages):
        for place in ("lists/partial", "cache/archives/partial", "dpkg"):
            (self.folder / place).mkdir(parents=True, exist_ok=True)
        (self.folder / "dpkg/status").touch()  # nothing is installed; apt's lock is beside it
        (self.folder / "root.sources").write_text("\n".join(self.sources()))
        places = {"Dir::Etc::sourcelist": self.folder / "root.sources", "Dir::Etc::sourceparts": "-",
                  "Dir::State::lists": self.folder / "lists", "Dir::Cache": self.folder / "cache",
                  "Dir::State::status": self.folder / "dpkg/status", "APT::Architecture": self.architecture,
                  "APT::Architectures": self.architecture, "APT::Sandbox::User": "",
                  "APT::Install-Recommends": "false", "Acquire::Languages": "none",
                  "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false", "Acquire::Retries": "3"}
        apt = ["apt-get", "-q", "-y"] + [word for key, value in places.items() for word in ("-o", f"{key}={value}")]
        bare.run(*apt, "update")
        bare.run(*apt, "--download-only", "install", *packages)

    def unpack(self):
        for name in ("bin", "sbin", "lib", "lib64"):
            (self.path / "usr" / name).mkdir(parents=True, exist_ok=True)
            (self.path / name).symlink_to("usr/" + name)
        for package in sorted((self.folder / "cache/archives").glob("*.deb")):
            tar = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE)
            done = subprocess.run(["tar", "-x", "--keep-directory-symlink", "-C", self.path], stdin=tar.stdout)
            assert (tar.wait(), done.returncode) == (0, 0), package

    def run(self, script, *shared, **environment):
        """Runs it with bash -e in the root, which also has the folders `shared`, under the same names."""
        mounts = [f"mount --rbind /dev {self.path}/dev", f"mount -t proc proc {self.path}/proc"]
        for name in ("dev", "proc", "tmp"):
            (self.path / name).mkdir(exist_ok=True)
        for folder in shared:
            inside = self.path / str(folder).lstrip("/")
            inside.mkdir(parents=True, exist_ok=True)
            mounts.append(f"mount --bind {shlex.quote(str(folder))} {shlex.quote(str(inside))}")
        mounts.append(f"cd / && exec chroot {shlex.quote(str(self.path))} \"$@\"")
        environment = {"PATH": bare.PATH, "HOME": "/root", "LC_ALL": "C.UTF-8", **environment}
        inside = ["env", "-i", *(f"{name}={value}" for name, value in environment.items()), "bash", "-ec", script]
        return bare.run(*CHROOT, "sh", "-ec", "\n".join(mounts), "sh", *inside)
