"""What the pages tell people to type."""
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "docs/php.md", "docs/python.md", "docs/redlock.md", "docs/deploy.md", "python/README.md",
         "php/README.md", "php/lib/README.md", "php/hyperf/README.md"]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.S | re.M)
INDENTED = re.compile(r"(?:^    .*\n|^\n(?=    ))+", re.M)


@dataclass
class Block:
    language: str  # that of the fence; `sh` where the block is indented
    text: str


def section(page, heading):
    """The text below a heading, down to the next heading."""
    texts = dict(reversed(headings(page)))  # where two have one name, the first counts
    assert heading in texts, f"{page} has no heading {heading!r}"
    return texts[heading]


def headings(page):
    """Each heading with the text down to the next heading of any level."""
    text = (ROOT / page).read_text()
    found = list(re.finditer(r"^#+ (.*)$", without_fences(text), re.M))
    ends = [heading.start() for heading in found[1:]] + [len(text)]
    return [(heading.group(1), text[heading.end():end]) for heading, end in zip(found, ends)]


def without_fences(text):
    """The text with its fenced blocks blanked out, so that places stay where they are."""
    return FENCE.sub(lambda found: re.sub(r"[^\n]", " ", found.group(0)), text)


def blocks(text):
    """Fenced and indented blocks, in order."""
    fenced = [(found.start(), Block(found.group(1), found.group(2))) for found in FENCE.finditer(text)]
    shell = []
    for found in INDENTED.finditer(FENCE.sub(lambda found: "-" * len(found.group(0)), text)):
        lines = (line[4:] for line in found.group(0).splitlines())
        shell.append((found.start(), Block("sh", "\n".join(lines).strip("\n") + "\n")))
    return [block for _, block in sorted(fenced + shell, key=lambda pair: pair[0]) if block.text.strip()]


def typed(page, heading, language="sh"):
    """The blocks of one language below a heading, as one text."""
    found = [block.text for block in blocks(section(page, heading)) if block.language == language]
    assert found, f"{page}, {heading!r}: no block of {language}"
    return "\n".join(found)


def steps(text):
    """The commands one by one, however the page joins and brackets them."""
    parts = (part.strip(" ()") for part in re.split(r"\n|&&", text))
    return [part for part in parts if part]


def packages(text):
    """The names behind each `apt-get install`."""
    names = (name for line in re.findall(r"^\s*apt-get install (.*)$", text, re.M) for name in line.split())
    return {name for name in names if "/" not in name}
