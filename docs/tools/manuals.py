#!/usr/bin/env python3
"""Writes the manual pages: redlock(1) from docs/redlock.md, redlock.conf(5) from the option table of the built library,
libredlock(3) and a page for each function from the header. lowdown makes them of Markdown.

    manuals.py LIBRARY FOLDER
"""
import re
import subprocess
import sys
from pathlib import Path

from options import ELSEWHERE, read_options

ROOT = Path(__file__).resolve().parents[2]
HEADER = (ROOT / "core/include/redlock.h").read_text()
VERSION = re.search(r'REDLOCK_VERSION "(.+?)"', HEADER)[1]


def page(name, section, about, see_also, body):
    text = f"# NAME\n\n{plain(name)} - {about}\n\n{body}\n\n# SEE ALSO\n\n{see_also}\n"
    done = subprocess.run(
        ["lowdown", "-s", "-tman", "--nroff-nolinks", "-M", f"title={name}", "-M", f"section={section}",
         "-M", f"source=libredlock {VERSION}"],
        input=text, capture_output=True, text=True, check=True)
    text = done.stdout.replace("\\fC", "\\fB")  # which every reader of manual pages knows
    return re.sub(r"^(\.S[HS]\n.*\n)\.[LP]P\n", r"\1", text, flags=re.M)


def plain(words):
    """Words in which nothing stands for emphasis."""
    return re.sub(r"([_*<>])", r"\\\1", words)


# ---- redlock(1) -----------------------------------------------------------------------------------------------------


def rows(table):
    """A table as a list: a terminal is too narrow for columns."""
    cells = [re.split(r" \| ", line.strip("| ")) for line in table[0].splitlines()[2:]]
    return "".join(f"- {first}: {'; '.join(rest)}\n" for first, *rest in cells)


def command():
    text = (ROOT / "docs/redlock.md").read_text()
    text = text.split("\n", 1)[1]  # its title
    text = re.sub(r"^#(#+) ", r"\1 ", text, flags=re.M)
    text = text.replace("\n# Recipes\n", "\n# Examples\n")
    text = re.sub(r"^# .*$", lambda found: found[0].upper(), text, flags=re.M)
    text = re.sub(r"(?:^\|.*\n)+", rows, text, flags=re.M)
    return page("redlock", 1, "locks over N independent Redis or Valkey nodes",
                "redlock.conf(5), libredlock(3), flock(1), `redlock help TOPIC`. The pages that end in *.md* are in "
                "*/usr/share/doc/redlock-tools*, or below the prefix in *share/doc/libredlock*.",
                "# SYNOPSIS\n\n`redlock COMMAND [OPTION...] ...`\n\n# DESCRIPTION\n\n" + text)


# ---- redlock.conf(5) ------------------------------------------------------------------------------------------------

CONF = """# DESCRIPTION

Nodes and defaults for redlock(1): the file that `--config` or `REDLOCK_CONFIG` names, else `/etc/redlock.conf` if there
is one. Each line is `name = value`. Blanks around names and values are ignored; a line that begins with `#` is a
comment; a name may appear once. Times are in milliseconds. Flags override the file. The environment
overrides it unless `--config` names it. Paths are relative to the folder of the file.

A file that cannot be read or contains a mistake is refused with its name and line. If it contains a password, let only
one group read it.

    # the nodes of production
    nodes = redis://app:s3cret@10.0.0.1,redis://app:s3cret@10.0.0.2,redis://app:s3cret@10.0.0.3
    ttl_ms = 30000
    key_prefix = lock:

# OPTIONS

"""


def option(one):
    unit = f" {one['unit']}" if one["unit"] else ""
    elsewhere = f" ({ELSEWHERE[one['name']]})" if one["name"] in ELSEWHERE else ""
    default = f" Default: {one['default']}{elsewhere}." if one["default"] else ""
    allowed = f" Allowed: {one['range']}." if one["range"] else ""
    first = one["help"][:1] if "://" in one["help"].split()[0] else one["help"][:1].upper()
    words = plain(first + one["help"][1:] + "." + default + allowed)
    return f"`{one['name']}` = *{one['type']}*{unit}\n\n> {words}\n\n"


def configuration(library):
    return page("redlock.conf", 5, "nodes and defaults of the command redlock", "redlock(1), libredlock(3)",
                CONF + "".join(map(option, read_options(library))))


# ---- libredlock(3) --------------------------------------------------------------------------------------------------


def comment(text):
    """The words of a comment, without its marks."""
    inner = re.sub(r"^ \* ?", "", text.strip()[2:-2].strip(), flags=re.M)
    inner = inner.replace("docs/options.md", "redlock.conf(5)").replace("docs/", "")
    return plain(inner.strip())


def overview():
    text = comment(re.match(r"/\*.*?\*/", HEADER, re.S)[0]).split("\n", 1)[1].replace("\\*", "*")
    parts = re.split(r"^([A-Z]{4,})  +", text.strip(), flags=re.M)
    out = [parts[0]]
    for label, words in zip(parts[1::2], parts[2::2]):
        paragraphs = re.sub(r"\n +", " ", words.strip())
        out.append(f"**{label.capitalize()}.** {paragraphs}\n")
    return "\n".join(out)


def sections():
    """What the header declares, with the comment in front of it."""
    body = HEADER[HEADER.index("#define REDLOCK_VERSION"):]
    wanted = r"(/\*(?:(?!\*/).)*?\*/)\n((?:REDLOCK_API[^;]+;\n)|(?:enum \w+ \{.*?\};\n))"
    for words, declared in re.findall(wanted, body, re.S):
        declared = re.sub(r"REDLOCK_(API|CHECK) ", "", declared).rstrip()
        name = re.search(r"(\w+)\(|enum (\w+)", declared)
        yield name[1] or name[2], declared, comment(words)


def library_page():
    body = ["# SYNOPSIS\n\n`#include <redlock.h>`, `cc ... $(pkg-config --cflags --libs libredlock)`\n",
            "# DESCRIPTION\n", overview(), "# FUNCTIONS AND VALUES\n"]
    for name, declared, words in sections():
        listing = "\n".join("    " + line for line in declared.splitlines())
        body.append(f"## {plain(name)}\n\n{listing}\n\n{words}\n")
    return page("libredlock", 3, "Redlock locks over N independent Redis or Valkey nodes",
                "redlock(1), redlock.conf(5)", "\n".join(body))


def about(words):
    """The first sentence, as the line of whatis(1)."""
    sentence = re.split(r"[.:;](?:\s|$)| \(", words.replace("\n", " "))[0].replace("\\", "")
    return plain(sentence[0].lower() + sentence[1:])


def function_page(name, declared, words):
    listing = "\n".join("    " + line for line in declared.splitlines())
    body = f"# SYNOPSIS\n\n`#include <redlock.h>`\n\n{listing}\n\n# DESCRIPTION\n\n{words}\n"
    return page(name, 3, about(words), "libredlock(3)", body)


def function_pages():
    return {f"functions/{name}.3": function_page(name, declared, words) for name, declared, words in sections()
            if not declared.startswith("enum")}


def pages(library):
    return {"redlock.1": command(), "redlock.conf.5": configuration(library), "libredlock.3": library_page(),
            **function_pages()}


if __name__ == "__main__":
    for name, text in pages(sys.argv[1]).items():
        path = Path(sys.argv[2], name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
