"""The table of docs/surfaces.md names what there is in each face."""

import ast
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("REDLOCK_BUILD_DIR", ROOT / "build/dev"))
HEADER = (ROOT / "core/include/redlock.h").read_text()
OPTIONS = re.findall(r"^\| <a id=\"(\w+)\"></a>", (ROOT / "docs/options.md").read_text(), re.M)
PAGE = (ROOT / "docs/surfaces.md").read_text()
LINES = [line.strip("|").split(" | ") for line in PAGE.splitlines() if line.startswith("|")]
HEAD, _, *ROWS = [[cell.strip() for cell in line] for line in LINES]
OF_THREADS, OF_TASKS = ("_client", "_thread"), ("aio", "_task")


def in_c(name):
    return name in OPTIONS or f" {name}(" in HEADER or f" *{name}(" in HEADER


def in_command(name):
    program, command, *flags = name.split()
    done = subprocess.run([BUILD / program, command, "--help-all"], capture_output=True, text=True)
    return done.returncode == 0 and all(re.search(rf"{flag}\b", done.stdout) for flag in flags)


def python_classes(others):
    """Name -> bases, and member -> parameters, of all modules but those of the other surface."""
    found = {}
    for path in sorted((ROOT / "python/libredlock").glob("*.py")):
        if path.stem.startswith(others) or path.stem == "otel":
            continue
        for one in ast.walk(ast.parse(path.read_text())):
            if isinstance(one, ast.ClassDef):
                members = {}
                for member in one.body:
                    if isinstance(member, (ast.FunctionDef, ast.AsyncFunctionDef)):
                        members.setdefault(member.name, set()).update(
                            argument.arg for argument in member.args.args + member.args.kwonlyargs)
                    elif isinstance(member, ast.AnnAssign):
                        members[member.target.id] = set()
                found.setdefault(one.name, ([ast.unparse(base) for base in one.bases], members))
    return found


FACES = python_classes(OF_TASKS), python_classes(OF_THREADS)


def python_members(classes, kind):
    bases, members = classes.get(kind, ((), {}))
    every = {}
    for base in bases:
        every.update(python_members(classes, base))
    return {**every, **members}


def in_python(name):
    kind, member, argument = re.fullmatch(r"(\w+)(?:\.(\w+))?(?:\((\w+)=\))?", name).groups()
    for classes in FACES:
        inner = member.replace("__enter__", "__aenter__") if member and classes is FACES[1] else member
        members = python_members(classes, kind)
        known = members.get(inner or "__init__")
        if known is None or (argument and argument not in known | set(python_members(classes, "LockOptions"))):
            return False
    return True


def in_php(folder):
    def is_there(name):
        kind, member, argument = re.fullmatch(r"(\w+)(?:::(\w+))?(?:\((\w+):\))?", name).groups()
        texts = [path.read_text() for path in (ROOT / folder).rglob(f"{kind}.php")]
        texts += [path.read_text() for text in texts for trait in re.findall(r"^    use (\w+);", text, re.M)
                  for path in (ROOT / folder).rglob(f"{trait}.php")]
        text = "".join(texts)
        return bool(texts) and (not member or re.search(rf"public (static )?function {member}\(", text)) and (
            not argument or re.search(rf"\${argument}\b", text))

    return is_there


CHECKS = [in_c, in_command, in_python, in_php("php/lib/src"), in_php("php/hyperf/src")]


def absent():
    for act, *cells in ROWS:
        for check, cell in zip(CHECKS, cells, strict=True):
            for name in re.findall(r"`([^`]+)`", cell):
                if not check(name):
                    yield f"{act}: {name}"


def test_every_name_in_the_table_exists():
    assert len(ROWS) > 20 and len(HEAD) == 1 + len(CHECKS)
    assert list(absent()) == []


@pytest.mark.parametrize("check, name", [
    (in_c, "redlock_lock_acquir"), (in_command, "redlock acquired"), (in_command, "redlock status --keep"),
    (in_python, "Client.lok"), (in_python, "Client.with_lock(kept=)"), (in_python, "Holder.extend"),
    (CHECKS[3], "Client::lok"), (CHECKS[3], "Client::lock(share:)"), (CHECKS[4], "WithLock(keep:)"),
])
def test_a_name_that_does_not_exist_is_found(check, name):
    assert not check(name)


def test_the_table_names_every_act_of_python():
    """And of a client, a lock and a hold nothing is left out."""
    acts = {name for kind in ("Client", "Lock", "Hold") for name in python_members(FACES[0], kind) if name[0] != "_"}
    named = set(re.findall(r"\b(?:Client|Lock|Hold)\.(\w+)", PAGE))
    assert acts - named - {"closed", "resource", "locked"} == set()
