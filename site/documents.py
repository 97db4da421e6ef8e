"""The pages of the repository, made pages of the site: its Markdown, the files that it points at, the manuals."""

import re
import subprocess
import sys
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.util import ClassNotFound

REPOSITORY = "https://github.com/libredlock/libredlock/tree/main/"
OVERVIEW = "overview.md"  # README: as such it would be the first page
PICTURES = [".svg", ".png"]
LINK = re.compile(r"\]\((?P<path>[^)#\s:]+)(?P<anchor>#[^)\s]+)?(?P<title>\s+\"(?P<name>[^\"]+)\")?\)")
HEADING = re.compile(r'<h([12])[^>]* id="([^"]+)"[^>]*><a[^>]*>(.*?)</a></h\1>', re.S)


WEIGHTS = {"Guides": "boost: 4", "Migrate": "boost: 0.5", "Design": "boost: 0.5", "Contribute": "exclude: true"}


def weights(navigation):
    """How much a page counts in the search, by the section of the navigation in which it stands."""
    section, found = "", {}
    for title, page in re.findall(r"^ +- (.+?):(?: (\S+\.md))?$", navigation, re.M):
        section = section if page else title
        found[page] = WEIGHTS.get(section)
    return found


class Documents:
    """Copies Markdown and follows its links; what is no Markdown becomes a page below source/."""

    def __init__(self, root, pages):
        self.root, self.pages, self.done = root, pages, set()
        self.weights = weights((root / "site/mkdocs.yml").read_text())

    def collect(self):
        for path in [*self.root.glob("*.md"), *(self.root / "docs").rglob("*.md")]:
            self.add(path)
        for path in (self.root / "docs/man").glob("*.[1-9]"):
            write(self.pages / "man" / (path.name + ".md"), manual(path))

    def add(self, path):
        if path not in self.done:
            self.done.add(path)
            text = LINK.sub(lambda link: self.link(path, link), path.read_text())
            name = page_of(path.relative_to(self.root))
            weight = self.weights.get(str(name))
            write(self.pages / name, f"---\nsearch: {{{weight}}}\n---\n\n{text}" if weight else text)

    def link(self, page, link):
        target = (page.parent / link["path"]).resolve()
        name = target.relative_to(self.root)
        if not target.exists():
            sys.exit(f"site: {page.relative_to(self.root)} has a link to {link['path']}, which there is not")
        if target.is_dir():
            return f"]({REPOSITORY}{name}{link['title'] or ''})"
        if target.suffix == ".md":
            self.add(target)
            return link[0] if page_of(name) == name else link[0].replace(name.name, OVERVIEW)
        if target.suffix in PICTURES:
            write(self.pages / name, target.read_bytes())
            return link[0]
        self.add_source(target, name)
        up = "../" * len(page.relative_to(self.root).parts[1:])
        return f"]({up}source/{name}.md{line_anchor(target, link['name'])}{link['title'] or ''})"

    def add_source(self, path, name):
        if path not in self.done:
            self.done.add(path)
            write(self.pages / "source" / f"{name}.md", source(path, name))


def page_of(name):
    return Path(OVERVIEW) if name == Path("README.md") else name


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def line_anchor(path, test):
    """Where the test is that a link's title names."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if test and line.startswith(f"def test_{test}("):
            return f"#line-{number}"
    return ""


def source(path, name):
    try:
        lexer = get_lexer_for_filename(path.name)
    except ClassNotFound:
        lexer = TextLexer()
    lines = HtmlFormatter(linenos="inline", linespans="line", wrapcode=True)
    title = f"---\ntitle: {name}\nsearch: {{exclude: true}}\nhide: [toc]\n---\n\n# {name}\n\n"
    return f'{title}<div class="source">\n{highlight(path.read_text(), lexer, lines)}</div>\n'


def manual(path):
    """As HTML by mandoc, but for the headings: as Markdown they are in the table of contents and can be searched."""
    command = ["mandoc", "-Thtml", "-Ofragment", path]
    html = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    html = re.search(r'<div class="manual-text">(.*)</div>\s*<table class="foot">', html, re.S)[1]
    html = re.sub(r"<pre>.*?</pre>", lambda pre: pre[0].replace("<br/>\n", ""), html, flags=re.S)  # empty lines
    _, *sections = HEADING.split(re.sub(r"</?section[^>]*>", "", html))
    text = [f"# {path.stem}({path.suffix[1:]})\n"]
    for level, anchor, words, body in zip(*[iter(sections)] * 4):
        words = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", words))
        text.append(f"{'#' * (int(level) + 1)} {words} {{#{anchor}}}\n\n<div class=\"manual\">{body}</div>\n")
    return "\n".join(text)
