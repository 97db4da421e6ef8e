"""Cases by faces, on the terminal and as an HTML page ($REDLOCK_MATRIX)."""
import html
import os
import re
from pathlib import Path

import faces

ROOT = Path(__file__).resolve().parents[2]
PAGE = Path(os.environ.get("REDLOCK_MATRIX") or ROOT / "build/results/conformance/matrix.html")
WORDS = {"passed": "ok", "failed": "FAIL", "n/a": "n/a", "absent": "absent", "": "-"}
_CASE = re.compile(r"(?:.*/)?(?:test_)?(\w+)\.py::(?:test_)?(\w+)(?:\[(.*)\])?$")


def row_of(nodeid):
    """The case's name without its faces: file: case, with other parameters."""
    file, case, parameters = _CASE.match(nodeid).groups()
    others = [word for word in (parameters or "").split("-") if word and word not in faces.ALL]
    return "%s: %s%s" % (file, case.replace("_", " "), " (%s)" % "-".join(others) if others else "")


def column_of(nodeid):
    """The face, or "first-second", or "all" at once; "" for a test of the suite itself."""
    parameters = (_CASE.match(nodeid).group(3) or "").split("-")
    otherwise = "all" if "cases/" in nodeid else ""
    return "-".join(word for word in parameters if word in faces.ALL) or otherwise


def variant(config):
    """The cluster of this run in words."""
    servers = os.environ.get("REDLOCK_SERVER") or "redis-server"
    return "nodes: %s, on %s, access by %s" % (
        " and ".join(os.path.basename(path) for path in servers.split(",")), config.getoption("--nodes"),
        {"none": "anybody", "password": "password", "acl": "users of an ACL"}[config.getoption("--auth")])


class Plugin:
    def __init__(self, config):
        self.config = config
        self.cells = {}    # (row, column) -> outcome
        self.reasons = {}  # (row, column) -> why n/a

    def pytest_runtest_logreport(self, report):
        key = row_of(report.nodeid), column_of(report.nodeid)
        if report.failed:
            self.cells[key] = "failed"
        elif report.when == "call" and key not in self.cells:
            self.cells[key] = report.outcome

    def pytest_testnodedown(self, node, error):
        self.config.not_applicable.update(getattr(node, "workeroutput", {}).get("not_applicable", {}))

    def pytest_terminal_summary(self, terminalreporter):
        if hasattr(self.config, "workerinput") or not self.cells:
            return
        for key, reason in self.config.not_applicable.items():
            row, _, column = key.rpartition("|")
            if any(cell[0].startswith(row) for cell in self.cells) or not self.is_selection():
                self.reasons[row, column] = reason
                self.cells[row, column] = "n/a"
        for title, rows, columns in self.tables():
            terminalreporter.section(title)
            for line in _text(rows, columns, self.cells):
                terminalreporter.write_line(line)
        for face, reason in faces.ABSENT.items():
            terminalreporter.write_line("%s is absent: %s" % (face, reason))
        terminalreporter.write_line(variant(self.config))
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(self.page(), encoding="utf-8")
        terminalreporter.write_line("the same as a page: %s" % PAGE)

    def is_selection(self):
        return bool(self.config.getoption("-k") or self.config.getoption("--face"))

    def tables(self):
        singles = sorted({row for row, column in self.cells if column in faces.ALL})
        together = sorted({row for row, column in self.cells if column == "all"})
        pairs = sorted({row for row, column in self.cells if "-" in column})
        yield "cases by faces", singles, [(face, face) for face in faces.ALL]
        if together:
            yield "cases of all faces at once", together, [("all", "all")]
        for row in pairs:
            yield row, faces.ALL, [(face, (row, face)) for face in faces.ALL]

    def page(self):
        tables = "".join("<h2>%s</h2>%s" % (html.escape(title), _html(rows, columns, self.cells, self.reasons))
                         for title, rows, columns in self.tables())
        absent = "".join("<li>%s: %s</li>" % item for item in faces.ABSENT.items())
        return _PAGE % (html.escape(variant(self.config)), tables, absent)


def _cell(row, column):
    """In a table of pairs the row is the first face."""
    return (column[0], "%s-%s" % (row, column[1])) if isinstance(column, tuple) else (row, column)


def _outcome(key, cells):
    is_absent = any(face in faces.ABSENT for face in key[1].split("-"))
    return cells.get(key, "absent" if is_absent else "")


def _text(rows, columns, cells):
    width = max(map(len, rows), default=4) + 1
    yield " " * width + "".join("%8s" % title for title, _ in columns)
    for row in rows:
        words = [WORDS.get(_outcome(_cell(row, column), cells), "skip") for _, column in columns]
        yield row.ljust(width) + "".join("%8s" % word for word in words)


def _html(rows, columns, cells, reasons):
    head = "<tr><th></th>%s</tr>" % "".join("<th>%s</th>" % title for title, _ in columns)
    body = ""
    for row in rows:
        body += "<tr><th>%s</th>" % html.escape(row)
        for _, column in columns:
            key = _cell(row, column)
            outcome = _outcome(key, cells)
            kind = {"n/a": "na", "absent": "na"}.get(outcome, outcome or "none")
            body += '<td class="%s" title="%s">%s</td>' % (
                kind, html.escape(reasons.get(key, "")), WORDS.get(outcome, "skip"))
        body += "</tr>"
    return "<table>%s%s</table>" % (head, body)


_PAGE = """<!doctype html>
<meta charset="utf-8">
<title>libredlock: conformance</title>
<style>
body { font: 14px sans-serif; margin: 2em }
table { border-collapse: collapse; margin-bottom: 2em }
th, td { border: 1px solid #bbb; padding: .2em .6em; text-align: left; font-weight: normal }
.passed { background: #cfc } .failed { background: #f99; font-weight: bold } .na, .none { color: #888 }
</style>
<h1>Conformance: cases by faces</h1>
<p>%s</p>
<p>In a table of pairs the row is the face that comes first. Point at n/a for the reason.</p>
%s
<h2>Absent faces</h2><ul>%s</ul>
"""
