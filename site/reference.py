"""The reference of the interfaces, from their own comments: a page for each function of the header, one for the Python
package, one for the PHP library."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs/tools"))

import manuals  # noqa: E402

GROUPS = [("Client", "redlock_client_"), ("Lock", "redlock_lock_"), ("Others", "redlock_")]
FIRST = ["Client", "Lock", "RLock", "Election", "Term"]
PYTHON = """# Python reference

[Python](../docs/python.md) is the guide. The keyword arguments of a client are
[below](#libredlock.types.ClientOptions), and so are [those of a lock](#libredlock.types.LockOptions).

::: libredlock
    options:
      members: [{members}]

::: libredlock.aio
    options:
      members: [{aio_members}]

::: libredlock.prometheus

::: libredlock.types

::: libredlock.testing
"""


def c_pages():
    """{name: text} of all functions and enums, and the list of them as `index`."""
    found = list(manuals.sections())
    pages = {}
    for name, declared, words in found:
        pages[name] = f"# {name}\n\n```c\n{declared}\n```\n\n{linked(words, name, {each for each, *_ in found})}\n"
    pages["index"] = "# C reference\n\n" + "".join(c_group(title, names) for title, names in grouped(pages))
    return pages


def grouped(names):
    left = sorted(names)
    for title, prefix in GROUPS:
        yield title, [name for name in left if name.startswith(prefix)]
        left = [name for name in left if not name.startswith(prefix)]


def c_group(title, names):
    return f"## {title}\n\n" + "".join(f"- [`{name}`]({name}.md)\n" for name in names) + "\n"


def linked(words, own, known):
    """Names of other functions lead to their pages. In the words of the manuals, what Markdown reads is escaped."""
    def link(found):
        name = found[0].replace("\\", "")
        return f"[`{name}`]({name}.md)" if name in known and name != own else f"`{name}`"

    return re.sub(r"\bredlock(?:\\?_\w+?)+\b(?![\\*])", link, words.replace("][", "]\\["))


def python_page():
    return PYTHON.format(members=members("__init__"), aio_members=members("aio"))


def members(module):
    """What a module exports, beginning with what a reader looks for."""
    text = (ROOT / f"python/libredlock/{module}.py").read_text()
    names = re.findall(r'"(\w+)"', re.search(r"^__all__ = \[(.*?)\]", text, re.M | re.S)[1])
    return ", ".join(sorted(names, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST)))


def php_page(build):
    """PHP's own reflection reads the doc comments."""
    done = subprocess.run(
        ["php", "-d", f"extension={build}/php/redlock.so", ROOT / "site/reference.php"],
        env={**os.environ, "LD_LIBRARY_PATH": str(build)}, capture_output=True, text=True, check=True)
    return done.stdout


def pages(build):
    made = {f"api/c/{name}.md": text for name, text in c_pages().items()}
    return {**made, "api/python.md": python_page(), "api/php.md": php_page(build)}
