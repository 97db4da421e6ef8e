"""Gets a source package of this machine's distribution, for what carries or builds its own copy of a library.

    source_package.py NAME FOLDER     unpacks it with the distribution's patches and prints where

apt-get fetches it and checks its signature. It has lists of its own in FOLDER, made from the `deb` entries of this
machine, so nothing of the system changes.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path


class FetchError(Exception):
    pass


def os_release() -> dict[str, str]:
    lines = Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
    return {name: value.strip('"') for name, _, value in (line.partition("=") for line in lines)}


def stanzas(text: str):
    """The entries of a deb822 file."""
    for block in text.split("\n\n"):
        lines = (line for line in block.splitlines() if not line.startswith("#"))
        fields = (line.partition(":") for line in lines if ":" in line and not line.startswith(" "))
        entry = {name.strip().lower(): value.strip() for name, _, value in fields}
        if {"types", "uris", "suites"} <= entry.keys():
            yield entry


def one_line(line: str) -> dict[str, str] | None:
    """The entry in a line `deb [option=value] URI SUITE COMPONENT...`."""
    kind, _, rest = line.strip().partition(" ")
    if kind != "deb":
        return None
    options, rest = rest.strip().split("]", 1) if rest.strip().startswith("[") else ("", rest)
    named = dict(word.split("=", 1) for word in options.lstrip("[").split() if "=" in word)
    uri, suite, *components = rest.split()
    entry = {"types": "deb", "uris": uri, "suites": suite, "components": " ".join(components)}
    return entry | ({"signed-by": named["signed-by"]} if "signed-by" in named else {})


def entries(apt: Path = Path("/etc/apt")):
    """The machine's entries for binary packages of its distribution, without those of others."""
    codename = os_release().get("VERSION_CODENAME", "")
    lists = [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*.list"))]
    found = [one_line(line) for path in lists if path.exists() for line in path.read_text().splitlines()]
    for path in sorted((apt / "sources.list.d").glob("*.sources")):
        found += stanzas(path.read_text())
    for entry in filter(None, found):
        suites = [suite for suite in entry["suites"].split() if codename and suite.startswith(codename)]
        if suites and "deb" in entry["types"].split() and entry.get("enabled", "yes") != "no":
            yield entry | {"suites": " ".join(suites)}


def source_entries() -> str:
    fields = ("uris", "suites", "components", "signed-by")
    texts = ["\n".join(["types: deb-src", *(f"{name}: {entry[name]}" for name in fields if name in entry)])
             for entry in entries()]
    if not texts:
        raise FetchError("no entries of this distribution in /etc/apt")
    return "\n\n".join(texts) + "\n"


def run(command: list, folder: Path) -> None:
    try:
        done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True)
    except FileNotFoundError:
        raise FetchError(f"{command[0]} is not installed") from None
    if done.returncode != 0:
        raise FetchError(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")


def fetch(name: str, folder: Path) -> Path:
    """Returns the tree of the source package NAME, with the distribution's patches, below FOLDER."""
    folder = folder.resolve()
    shutil.rmtree(folder / name, ignore_errors=True)
    for place in ("lists/partial", "cache/archives/partial", name):
        (folder / place).mkdir(parents=True, exist_ok=True)
    (folder / "source.sources").write_text(source_entries())
    places = {"Dir::Etc::sourcelist": folder / "source.sources", "Dir::Etc::sourceparts": "-",
              "Dir::State::lists": folder / "lists", "Dir::Cache": folder / "cache",
              "APT::Sandbox::User": "", "Acquire::Languages": "none"}
    apt = ["apt-get", "-q"] + [word for key, value in places.items() for word in ("-o", f"{key}={value}")]
    if not list((folder / "lists").glob("*_Sources*")):
        run([*apt, "update"], folder)
    run([*apt, "source", "--download-only", name], folder / name)
    description, = (folder / name).glob("*.dsc")
    tree = folder / name / "tree"
    run(["dpkg-source", "--no-check", "-x", description.name, tree], folder / name)  # apt-get has checked it
    return tree


def version(tree: Path) -> str:
    """Of a Debian source tree: what its changelog begins with."""
    changelog = tree / "debian/changelog"
    return changelog.read_text(encoding="utf-8").split("(", 1)[1].split(")", 1)[0] if changelog.exists() else "unknown"


def main(name: str, folder: str) -> int:
    try:
        print(fetch(name, Path(folder)))
    except FetchError as error:
        print(f"source_package.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
