"""Makes what a release consists of; ./dev package prepares its tools.

    php         redlock-VERSION: the extension's source archive for PIE and phpize, with the generated C and the parser
                of hiredis in it: php_redlock-VERSION-src.tgz
    composer    the trees of the two Composer packages, and an archive of each
    sdist       the source distribution for Python, with jansson, popt and hiredis in it
    wheels      wheels for glibc from 2.17 on and for musl, for x86_64 and aarch64; nothing but the libc is needed
    debian      packages for the Debian of this machine: libredlock0, libredlock-dev, redlock-tools, php-redlock

All of it is made from the files that git tracks, as they are in the work tree.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from datetime import datetime, timezone
from email.utils import format_datetime
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from source_package import FetchError, fetch
from source_package import version as source_version

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bindings"))
from cdef import version  # noqa: E402

PARSER = ("read.c", "read.h", "sds.c", "sds.h", "alloc.c", "alloc.h", "fmacros.h", "sdsalloc.h", "win32.h",
          "hiredis.h", "COPYING")
FORMAT = ("hiredis.c", "net.c", "net.h", "async.c", "async.h", "async_private.h", "dict.c", "dict.h", "sockcompat.c",
          "sockcompat.h")  # what `redlock ls` takes of hiredis, and what that needs
LIBRARIES = {  # what else the sdist carries: the files for the command, and those that hold the licence
    "jansson": (["src/*.[ch]", "src/jansson_config.h.in"], "LICENSE"),
    "popt": (["src/*.[ch]"], "COPYING"),
}
JANSSON = {"inline": "inline", "have_long_long": "1", "have_localeconv": "1", "have_atomic_builtins": "1",
           "have_sync_builtins": "1"}
TARGETS = {  # what zig compiles for: the platform tag that the wheel then may have
    "x86_64-linux-gnu.2.17": "manylinux_2_17_x86_64", "aarch64-linux-gnu.2.17": "manylinux_2_17_aarch64",
    "x86_64-linux-musl": "musllinux_1_2_x86_64", "aarch64-linux-musl": "musllinux_1_2_aarch64",
}
MAINTAINER = "the libredlock developers <libredlock@users.noreply.github.com>"
COMPOSER = {"php/lib": "redlock", "php/hyperf": "hyperf"}


class PackageError(Exception):
    pass


def run(*command, cwd: Path = ROOT, **environment: str) -> str:
    done = subprocess.run([str(word) for word in command], cwd=cwd, env={**os.environ, **environment},
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise PackageError(f"{' '.join(map(str, command))}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def tracked(folder: str = ".") -> list[str]:
    return [name for name in run("git", "ls-files", "-z", "--", folder).split("\0") if name and (ROOT / name).is_file()]


def moment() -> int:
    """The time that all files in archives have, so that the same commit makes the same bytes."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or run("git", "log", "-1", "--format=%ct"))


def new_folder(path: Path) -> Path:
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


def copy(names: list[str], target: Path, below: str = ".") -> None:
    for name in names:
        place = target / os.path.relpath(name, below)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, place)


def with_version(path: Path) -> None:
    """In the repository the tag is the version, as Packagist wants it; an archive has none."""
    package = json.loads(path.read_text())
    package = {"name": package.pop("name"), "description": package.pop("description"), "version": version()} | package
    path.write_text(json.dumps(package, indent=4) + "\n")


class Release:
    def __init__(self, out: Path, hiredis: Path | None, tags: list[str]):
        self.out, self.work, self.hiredis, self.tags = out, out / "work", hiredis, tags
        self.work.mkdir(parents=True, exist_ok=True)

    def add_parser(self, tree: Path, more: tuple[str, ...] = ()) -> None:
        """hiredis' parser (and MORE of it), from the distribution's source package or from a tree that was named."""
        self.hiredis = self.hiredis or fetch("hiredis", self.work / "sources")
        if not (self.hiredis / "read.c").is_file() or not (self.hiredis / "COPYING").is_file():
            raise PackageError(f"{self.hiredis} is no source tree of hiredis: it has no read.c or no COPYING")
        folder = new_folder(tree / "third_party/hiredis")
        for name in PARSER + more:
            if (self.hiredis / name).exists():
                shutil.copyfile(self.hiredis / name, folder / name)
        (folder / "README").write_text(
            f"The reply parser of hiredis {source_version(self.hiredis)}; its licence is COPYING.\n")

    def add_libraries(self, tree: Path) -> None:
        """What the command is linked with, and a list of all that is below third_party."""
        self.add_parser(tree, FORMAT)
        parts = {"hiredis": ("BSD-3-Clause", source_version(self.hiredis))}
        for name, (patterns, licence) in LIBRARIES.items():
            source, folder = fetch(name, self.work / "sources"), new_folder(tree / "third_party" / name)
            for path in (path for pattern in patterns for path in source.glob(pattern)):
                shutil.copyfile(path, folder / path.name)
            shutil.copyfile(source / licence, folder / "COPYING")
            parts[name] = ("MIT", source_version(source))
        template = tree / "third_party/jansson/jansson_config.h.in"
        text = template.read_text()
        for name, value in JANSSON.items():
            text = text.replace(f"@json_{name}@", value)
        template.with_suffix("").write_text(text)
        template.unlink()
        template.with_name("jansson_private_config.h").write_text("/* bindings/libraries.py defines its macros */\n")
        (tree / "third_party/sbom.cdx.json").write_text(bill_of_materials(parts))

    def php(self) -> None:
        tree = new_folder(self.work / f"redlock-{version()}")
        run(sys.executable, "bindings/php_generate.py", "--tree", tree)
        shutil.copyfile(ROOT / "php/README.md", tree / "README.md")
        self.add_parser(tree)
        target = self.out / f"php_redlock-{version()}-src.tgz"
        pack(tree, target)
        print(target)

    def composer(self) -> None:
        for folder, name in COMPOSER.items():
            tree = new_folder(self.out / "composer" / name)
            files = tracked(folder)
            copy(files, tree, folder)
            with_version(tree / "composer.json")
            target = self.out / f"libredlock-{name}-{version()}.zip"
            with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
                for path in exported(files):
                    entry = zipfile.ZipInfo(os.path.relpath(path, folder))
                    entry.external_attr, entry.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
                    archive.writestr(entry, (tree / entry.filename).read_bytes())
            run("composer", "validate", "--strict", "--no-check-version", cwd=tree, COMPOSER_ALLOW_SUPERUSER="1",
                COMPOSER_DISABLE_NETWORK="1")
            print(tree, target, sep="\n")

    def sdist(self) -> Path:
        tree = new_folder(self.work / "python")
        copy(tracked(), tree)
        self.add_libraries(tree)
        run(sys.executable, "-m", "build", "--no-isolation", "--sdist", "--outdir", self.out, tree,
            SOURCE_DATE_EPOCH=str(moment()))
        path = self.out / f"libredlock-{version()}.tar.gz"
        repack(path, self.work)
        twine_check(path)
        print(path)
        return path

    def wheels(self) -> None:
        """From the source distribution, as everybody else would build them."""
        sdist = self.out / f"libredlock-{version()}.tar.gz"
        if not sdist.exists():
            self.sdist()
        wheels = [self.wheel(sdist, target, tag) for target, tag in TARGETS.items() if tag in self.tags]
        twine_check(*wheels)
        print(*wheels, sep="\n")

    def multiarch_headers(self) -> Path:
        """Debian's Python.h includes a header below /usr/include/ARCHITECTURE, the rest of which is not for zig."""
        folder = new_folder(self.work / "include")
        architecture = sysconfig.get_config_var("MULTIARCH") or ""
        for headers in Path("/usr/include", architecture).glob("python3*") if architecture else ():
            (folder / architecture).mkdir(exist_ok=True)
            (folder / architecture / headers.name).symlink_to(headers)
        return folder

    def wheel(self, sdist: Path, target: str, tag: str) -> Path:
        plain = new_folder(self.work / target)
        zig = Path(find_spec("ziglang").origin).with_name("zig")
        compiler = f"{sys.executable} -IS {Path(__file__).with_name('zig_cc.py')} {zig} {target}"  # for each file
        platform = tag if "musl" in tag else f"linux_{target.split('-')[0]}"
        run(sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-deps", "--no-build-isolation",
            "--wheel-dir", plain, sdist, cwd=plain, CC=compiler, LDSHARED=f"{compiler} -shared",
            CFLAGS=f"-I{self.multiarch_headers()}", _PYTHON_HOST_PLATFORM=platform, SOURCE_DATE_EPOCH=str(moment()))
        (wheel,) = plain.glob("*.whl")
        if platform != tag:
            wheel = self.repaired(wheel, tag)
        return Path(shutil.move(wheel, self.out / wheel.name))

    def debian(self) -> None:
        tree = new_folder(self.work / f"debian/libredlock-{version()}")
        copy(tracked(), tree)
        shutil.move(tree / "packages/debian", tree / "debian")
        (tree / "debian/changelog").write_text(
            f"libredlock ({version()}) unstable; urgency=medium\n\n  * Version {version()}.\n\n"
            f" -- {MAINTAINER}  {format_datetime(datetime.fromtimestamp(moment(), timezone.utc))}\n")
        run("dpkg-buildpackage", "--build=binary", "--no-sign", cwd=tree, SOURCE_DATE_EPOCH=str(moment()),
            DEB_BUILD_OPTIONS="noautodbgsym", DEB_CFLAGS_STRIP="-g")
        for package in tree.parent.glob("*.deb"):
            print(shutil.copy(package, self.out))

    def repaired(self, wheel: Path, tag: str) -> Path:
        """auditwheel says which glibc the wheel really needs. (It does not know musl on a machine with glibc.)"""
        checked = new_folder(self.work / "checked")
        tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        run(sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", checked, wheel, PATH=tools,
            SOURCE_DATE_EPOCH=str(moment()))
        (wheel,) = checked.glob("*.whl")
        if tag not in wheel.stem.rsplit("-", 1)[1].split("."):
            raise PackageError(f"{wheel.name} needs more than {tag} has")
        return wheel


def bill_of_materials(parts: dict[str, tuple[str, str]]) -> str:
    """CycloneDX: what is linked into the extension and the command."""
    ours = {"type": "library", "name": "libredlock", "version": version(), "bom-ref": "libredlock",
            "purl": f"pkg:pypi/libredlock@{version()}", "licenses": [{"license": {"id": "Apache-2.0"}}]}
    components = [{"type": "library", "name": name, "version": number, "bom-ref": name,
                   "purl": f"pkg:deb/debian/{name}@{quote(number, safe='')}?arch=source",
                   "licenses": [{"license": {"id": licence}}]} for name, (licence, number) in sorted(parts.items())]
    return json.dumps({"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "metadata": {"component": ours},
                       "components": components,
                       "dependencies": [{"ref": "libredlock", "dependsOn": sorted(parts)}]}, indent=2) + "\n"


def repack(path: Path, work: Path) -> None:
    """The same files make the same archive: setuptools keeps their times and owners."""
    tree = new_folder(work / "repacked")
    with tarfile.open(path) as tar:
        tar.extractall(tree, filter="data")
    (top,) = tree.iterdir()
    pack(top, path)


def pack(tree: Path, target: Path) -> None:
    with open(target, "wb") as raw, gzip.GzipFile("", "wb", mtime=moment(), fileobj=raw) as packed, \
            tarfile.open(fileobj=packed, mode="w") as tar:
        tar.add(tree, tree.name, filter=anonymous)


def twine_check(*paths: Path) -> None:
    run(sys.executable, "-m", "twine", "check", "--strict", *paths)


def anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime, entry.mode = moment(), 0o755 if entry.isdir() else 0o644
    return entry


def exported(files: list[str]) -> list[str]:
    """Those that .gitattributes does not keep out of archives."""
    answers = run("git", "check-attr", "-z", "export-ignore", "--", *files).split("\0")
    ignored = set(answers[i] for i in range(0, len(answers) - 2, 3) if answers[i + 2] == "set")
    return [name for name in files if name not in ignored]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "build/packages", help="the folder to fill")
    parser.add_argument("--hiredis", type=Path, metavar="DIR",
                        help="a source tree of hiredis (default: the distribution's source package)")
    parser.add_argument("--tag", action="append", choices=TARGETS.values(), help="make the wheel of this platform only")
    parser.add_argument("products", nargs="*", metavar="PRODUCT",
                        help="php, composer, sdist, wheels, debian (default: all)")
    options = parser.parse_args()
    release = Release(options.out.resolve(), options.hiredis and options.hiredis.resolve(),
                      options.tag or list(TARGETS.values()))
    makers = {"php": release.php, "composer": release.composer, "sdist": release.sdist, "wheels": release.wheels,
              "debian": release.debian}
    unknown = [name for name in options.products if name not in makers]
    if unknown:
        parser.error(f"no product {unknown[0]!r}; there are: {', '.join(makers)}")
    try:
        for name in options.products or makers:
            makers[name]()
    except (PackageError, FetchError) as error:
        print(f"packages/make.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
