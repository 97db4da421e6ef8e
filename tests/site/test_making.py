"""How the site is made: charts show the figures that they were given, links are turned the right way."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "site"))
from charts import charts_of  # noqa: E402
from documents import Documents, manual  # noqa: E402

ROW = {"unit": "us", "raw": None, "hiredis": None, "ratio": None, "ratio_to": "", "goal": "", "reached": None}
MACHINE = {"date": "2026-01-02 03:04 UTC", "processor": "a processor", "cores": 2, "server": "7.0.0", "load": 0.5}


def test_bars_are_as_long_as_the_figures():
    rows = [{**ROW, "axis": "64 started, by majority", "redlock": 3000, "raw": 4000, "hiredis": 2000}]
    [(name, _, words, svg)] = charts_of(rows)
    bars = [float(width) for width in re.findall(r'<rect x="110" y="\d+" width="([\d.]+)"', svg)]
    assert name == "in-flight" and "libredlock 3,000, plain hiredis 2,000, raw sockets 4,000" in words
    assert bars[0] / bars[2] == pytest.approx(0.75, 0.01) and bars[1] / bars[2] == pytest.approx(0.5, 0.01)
    assert [figure in svg for figure in (">3,000<", ">2,000<", ">4,000<")] == [True] * 3


def test_there_is_no_chart_without_figures():
    assert list(charts_of([{**ROW, "axis": "something else", "redlock": 1}])) == []


def test_links_lead_to_pages_and_copies(tmp_path):
    root, pages = tmp_path / "root", tmp_path / "pages"
    for name, text in {
        "README.md": '[a](docs/a.md#b), [t](tests/test_x.py "holds"), [c](core/x.c), [d](core), [e](https://e.org/x.c)',
        "docs/a.md": "[up](../core/x.c) and [b](#b) ![p](p.svg) [home](../README.md#c)",
        "docs/p.svg": "<svg/>",
        "docs/man/x.1": '.TH x 1\n.SH NAME\nx - y\n.SS "Some words"\ntext\n',
        "tests/test_x.py": "import x\n\n\ndef test_holds():\n    pass\n",
        "core/x.c": "int a < b;\n",
        "site/mkdocs.yml": "nav:\n  - Guides:\n      - A: docs/a.md\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    Documents(root, pages).collect()
    assert (pages / "overview.md").read_text() == (
        '[a](docs/a.md#b), [t](source/tests/test_x.py.md#line-4 "holds"), [c](source/core/x.c.md),'
        " [d](https://github.com/libredlock/libredlock/tree/main/core), [e](https://e.org/x.c)")
    assert (pages / "docs/a.md").read_text() == (
        "---\nsearch: {boost: 4}\n---\n\n[up](../source/core/x.c.md) and [b](#b) ![p](p.svg) [home](../overview.md#c)")
    assert (pages / "docs/p.svg").read_text() == "<svg/>"
    assert 'id="line-4"' in (pages / "source/tests/test_x.py.md").read_text()
    assert "&lt;</span>" in (pages / "source/core/x.c.md").read_text()
    assert "### Some words {#Some_words}" in (pages / "man/x.1.md").read_text()


def test_a_link_to_nothing_is_an_error(tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site/mkdocs.yml").write_text("nav:\n")
    (tmp_path / "README.md").write_text("[a](gone.md)")
    with pytest.raises(SystemExit, match=r"^site: README.md has a link to gone.md, which there is not$"):
        Documents(tmp_path, tmp_path / "pages").collect()


def test_a_manual_page_loses_nothing():
    text = manual(ROOT / "docs/man/redlock.1")
    assert "## SYNOPSIS {#SYNOPSIS}" in text and "<section" not in text and "redlock release" in text
    assert text.count("<div") == text.count("</div>")


@pytest.mark.parametrize("content, message", [
    (None, "No such file"),
    ("no json", "Expecting value"),
    ("[]", "allowed: a file that"),
    (json.dumps({"machine": MACHINE, "quick": True, "rounds": 3, "rows": []}), "it has no rows"),
    (json.dumps({"machine": {"cores": 2}, "quick": True, "rounds": 3, "rows": [1]}), "it has no date"),
])
def test_results_that_say_too_little_are_refused(tmp_path, content, message):
    path = tmp_path / "results.json"
    if content is not None:
        path.write_text(content)
    done = subprocess.run([ROOT / "build/venv-site/bin/python", ROOT / "site/make.py", "--bench", path],
                          capture_output=True, text=True)
    assert done.returncode == 2
    assert f"argument --bench: {path}: " in done.stderr.replace("\n", " ") and message in done.stderr
    assert "allowed: a file that ./dev bench --json FILE has written" in done.stderr
