"""Pages that are made by a tool are current, and what the pages point at exists."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/packages"))

import pages  # noqa: E402

BUILD = Path(os.environ.get("REDLOCK_BUILD_DIR", ROOT / "build/dev"))
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("page, begin, form", [("redlock", "| `verdict` |", "`{}`"), ("python", "`verdict` is", '"{}"'),
                                               ("php", "- **Asking**", "`{}`")])
def test_pages_name_each_verdict_that_status_may_give(page, begin, form):
    header = (ROOT / "core/include/redlock.h").read_text()
    verdicts = {name.lower() for name in re.findall(r"REDLOCK_VERDICT_(\w+) = ", header)}
    verdicts -= {"unknown"} if page == "python" else set()  # there status() raises NoQuorum
    _, said = (ROOT / f"docs/{page}.md").read_text().replace("Verdict::", "").lower().split(f"\n{begin.lower()}", 1)
    said = re.split(r"\n(?:\n|- |\| )", said)[0]
    assert [name for name in verdicts if form.format(name) not in said] == []


@pytest.mark.parametrize("name", ["options", "metrics", "troubleshooting"])
def test_pages_from_the_library_are_current(name):
    made = subprocess.run(
        [sys.executable, ROOT / f"docs/tools/{name}.py", BUILD / "libredlock.so"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert (ROOT / f"docs/{name}.md").read_text() == made, "run ./dev docs"


@pytest.fixture(scope="module")
def manuals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("man")
    subprocess.run([sys.executable, ROOT / "docs/tools/manuals.py", BUILD / "libredlock.so", folder], check=True)
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*.[1-9]")}


MANUALS = ["redlock.1", "redlock.conf.5", "libredlock.3"]


def test_manual_pages_are_current(manuals):
    """And no page is left of a function that is not declared any more."""
    written = {str(path.relative_to(ROOT / "docs/man")): path.read_text()
               for path in (ROOT / "docs/man").rglob("*.[1-9]")}
    assert written == manuals, "run ./dev docs"


def test_each_function_has_a_manual_page():
    functions = re.findall(r"REDLOCK_API [^;]*?(redlock_\w+)\(", (ROOT / "core/include/redlock.h").read_text())
    pages = {path.stem: path for path in (ROOT / "docs/man/functions").iterdir()}
    assert sorted(functions) == sorted(pages)
    done = subprocess.run(["mandoc", "-Tlint", "-Wwarning", *pages.values()], capture_output=True, text=True)
    assert [line for line in done.stdout.splitlines() if "missing date" not in line] == []
    said = subprocess.run(["mandoc", "-Tascii", "-Owidth=1000", pages["redlock_lock_acquire"]], check=True,
                          capture_output=True, text=True).stdout
    assert "redlock_lock_acquire - acquires the lock" in re.sub(".\b", "", said)


def rendered(name):
    """As a terminal shows it, in one line."""
    page = ROOT / "docs/man" / name
    done = subprocess.run(["mandoc", "-Tascii", "-Owidth=1000", page], check=True, capture_output=True, text=True)
    return re.sub(r"\s+", " ", re.sub(".\b", "", done.stdout))


@pytest.mark.parametrize("name", MANUALS)
def test_manual_pages_have_no_mistake(name):
    done = subprocess.run(["mandoc", "-Tlint", "-Wwarning", ROOT / "docs/man" / name], capture_output=True, text=True)
    assert [line for line in done.stdout.splitlines() if "missing date" not in line] == []
    assert "\\" not in rendered(name).replace("\\n", "")


def test_manual_pages_have_all_functions_options_and_commands():
    functions = re.findall(r"REDLOCK_API [^;]*?(redlock_\w+)\(", (ROOT / "core/include/redlock.h").read_text())
    text = rendered("libredlock.3")
    assert len(functions) > 40 and [name for name in functions if f" {name} " not in text] == []
    options = re.findall(r"^\| <a id=\"(\w+)\"></a>", (ROOT / "docs/options.md").read_text(), re.M)
    text = rendered("redlock.conf.5")
    assert len(options) > 20 and [name for name in options if f" {name} = " not in text] == []
    assert "Default: 15000 (Python, redlock lead, elections: no limit; redlock run, lock, acquire: 40 s)." in text
    overview = subprocess.run([BUILD / "redlock", "--help"], check=True, capture_output=True, text=True).stdout
    commands = set(re.findall(r"^  redlock (\w+)", overview, re.M)) - {"help"}
    text = rendered("redlock.1")
    assert len(commands) > 7 and [name for name in commands if f" {name} [OPTION...]" not in text] == []


def test_manual_page_of_the_command_has_the_usual_sections():
    page = (ROOT / "docs/man/redlock.1").read_text()
    sections = re.findall(r"^\.SH\n(.+)$", page, re.M)
    assert {"NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLES", "OPTIONS", "ENVIRONMENT", "FILES", "EXIT STATUS",
            "SEE ALSO"} <= set(sections), sections


def test_options_in_php_signatures_are_current():
    subprocess.run([sys.executable, ROOT / "docs/tools/php_options.py", "--check", BUILD / "libredlock.so"], check=True)


def test_the_options_in_python_s_types_are_current():
    script = ROOT / "docs/tools/python_options.py"
    subprocess.run([sys.executable, script, "--check", BUILD / "libredlock.so"], check=True)


LINK = re.compile(r"\]\(([^)#\s]*)(#[^)\s]+)?(?:\s+\"([^\"]+)\")?\)")


def anchors(page):
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
    return {"#" + re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    """To a file, to a heading in it, or to the test that the link's title names."""
    missing = []
    for path, anchor, title in LINK.findall(page.read_text()):
        target = page.parent / path if path else page
        if "://" in path:
            continue
        if not target.exists() or (anchor and anchor not in anchors(target)):
            missing.append(path + anchor)
        elif title and not re.search(rf"^def test_{title}\(", target.read_text(), re.M):
            missing.append(f"{path}: test_{title}")
    assert missing == []


def test_every_promise_names_its_evidence():
    page = (ROOT / "docs/evidence.md").read_text().split("## Limits")[0]
    rows = [re.split(r"\s*\|\s*", line)[1:-1] for line in page.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 12
    assert [row[0] for row in rows if len(row) != 4 or "](../tests/" not in row[3]] == []


README = (ROOT / "README.md").read_text()


QUARANTINE_S = 30  # of new nodes that nobody has bootstrapped, by default
FIRST = [("README.md", "Shell"), ("README.md", "C"), ("README.md", "Python"), ("README.md", "PHP"),
         ("docs/redlock.md", "The command `redlock`"), ("docs/redlock.md", "1. Run a job once in the whole fleet"),
         ("docs/python.md", "Python"), ("python/README.md", "libredlock")]


def seconds(text):
    value, unit = re.fullmatch(r"([\d.]+)(ms|s|m|h)", text).groups()
    return float(value) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[unit]


@pytest.mark.parametrize("page, heading", FIRST, ids=lambda name: name)
def test_first_examples_work_on_new_nodes(page, heading):
    """No wait ends before a quarantine does, and nothing asks for a longer lease than the default allows."""
    code = "".join(block.text for block in pages.blocks(pages.section(page, heading)))
    waits = [float(n) for n in re.findall(r"(?:\bwait|timeout)=([\d.]+)", code)]
    waits += [int(ms) / 1000 for ms in re.findall(r"(?:lock_acquire\(lock, |waitMs: )(\d+)", code)]
    waits += [seconds(time) for time in re.findall(r"--wait (\d\S*)", code)]
    leases = [seconds(time) for time in re.findall(r"--(?:keep|ttl) (\S+)", code)]
    assert code and [wait for wait in waits if wait <= QUARANTINE_S] == []
    assert [lease for lease in leases if lease > QUARANTINE_S] == []


def test_c_example_says_why_it_failed():
    code = "".join(block.text for block in pages.blocks(pages.section("README.md", "C")) if block.language == "c")
    assert re.search(r"\} else \{.*redlock_lock_message\(lock, .*fprintf\(stderr", code, re.S)


def test_readme_begins_with_what_a_stranger_needs():
    """What it is and is not, how to install it, a program that runs as typed, and the two commands of contributors."""
    head = "\n".join(README.splitlines()[:52])
    for words in ("Distributed locks", "What it is not", "git clone ", "pip install", "import libredlock", "./dev demo",
                  "./dev test"):
        assert words in head


def test_blocks_of_readme_can_be_pasted_from_a_terminal():
    """As they stand in the file: an indented program is none in Python. The first gets what all others are typed in."""
    blocks = pages.blocks(README)
    assert pages.INDENTED.findall(pages.FENCE.sub("---\n", README)) == []
    (clone,) = [block.text.strip() for block in blocks if "git clone" in block.text]
    assert pages.typed("CONTRIBUTING.md", "The first minute").splitlines()[0] == clone


def test_readme_has_at_most_one_link_in_a_sentence():
    text = re.sub(r"^```.*?^```$|^\|.*$|^    .*$", "", README.split("\n## Documentation")[0], flags=re.M | re.S)
    sentences = re.split(r"(?<=[.:])\s+(?=[A-Z*-])|\n\n|\n- ", text)
    assert [sentence for sentence in sentences if sentence.count("](") > 1] == []
    assert "](tests/" not in README.split("\n## Documentation")[0]


def test_every_task_in_the_help_exists_and_the_other_way_round():
    script = (ROOT / "dev").read_text()
    written = set(re.findall(r"^task_(\w+)\(\)", script, re.M))
    said = subprocess.run([ROOT / "dev", "help"], check=True, capture_output=True, text=True).stdout
    assert set(re.findall(r"^  (\w+) ", said, re.M)) == written


def test_unknown_tasks_and_parts_are_refused():
    for words, message in (["nonsense"], "no task 'nonsense'"), (["test", "nonsense"], "no part 'nonsense'"):
        done = subprocess.run([ROOT / "dev", *words], capture_output=True, text=True)
        assert done.returncode == 2 and message in done.stderr


def test_help_of_the_tests_names_their_options():
    said = subprocess.run([ROOT / "dev", "test", "--help"], capture_output=True, text=True, timeout=60).stdout
    options = set(re.findall(r"^ +(--\w+)\)", (ROOT / "tests/run").read_text(), re.M)) - {"--aside"}
    assert {"--all", "--plain", "--real", "--list"} <= options and all(option in said for option in options)


def test_a_part_of_the_tests_installs_only_what_it_needs():
    def packages(*parts):
        words = [ROOT / "dev", "test", "--packages", *parts]
        return set(subprocess.run(words, check=True, capture_output=True, text=True).stdout.split())

    listed = subprocess.run([ROOT / "dev", "test", "--list"], check=True, capture_output=True, text=True).stdout
    parts = [line.split()[0] for line in listed.splitlines()]
    assert packages("unit") < packages("live") < packages(*parts) == packages()
    assert not packages("unit") & {"redis-server", "php-cli", "clang", "valgrind", "python3-venv", "composer"}
    assert {"gcc", "cmake", "libcmocka-dev", "libhiredis-dev"} < packages("unit")


def test_every_rule_that_the_code_cites_is_explained():
    labels = re.findall(r"^\| ((?:0|[A-G])[.\d]*) \|", (ROOT / "docs/safety.md").read_text(), re.M)
    assert len(labels) == len(set(labels)) > 20
    cited = {}
    for path in sorted([*(ROOT / "core").rglob("*.[ch]"), *(ROOT / "tests/sim").glob("*.[ch]")]):
        for label in re.findall(r"\b[Rr]ules? ((?:0|[A-G])(?:\.\d+)*)\b|\b([A-G]\.\d+(?:\.\d+)*)\b", path.read_text()):
            cited.setdefault(label[0] or label[1], path.relative_to(ROOT))
    assert len(cited) > 10
    unknown = {
        label: str(path)
        for label, path in cited.items()
        if not any(known == label or known.startswith(label + ".") for known in labels)
    }
    assert not unknown, "docs/safety.md has no such rule"


def test_the_architecture_names_the_files_that_there_are():
    page = (ROOT / "docs/ARCHITECTURE.md").read_text()
    rows, floor = [], ""
    for row in re.findall(r"^\|(.*)\|(.*)\|.*\|$", page.split("| floor | files |")[1].split("\n\n")[0], re.M):
        floor = row[0].strip(" `/") or floor
        rows += [f"{floor}/{name}" for name in re.findall(r"`(\w+)`", row[1])]
    listed = set(rows)
    assert sorted(listed) == sorted(rows)
    files = {str(path.relative_to(ROOT / "core/src"))[:-2] for path in (ROOT / "core/src").rglob("*.[ch]")}
    sources = {name for name in files if (ROOT / f"core/src/{name}.c").exists()}
    assert listed <= files and sources <= listed, (sorted(listed - files), sorted(sources - listed))
    cited = set(re.findall(r"`((?:base|rules|node|vote|lock|kinds|client|api)/\w+)\.[ch]`", page))
    assert cited <= files, sorted(cited - files)
    assert all((ROOT / path).exists() for path in re.findall(r"`((?:core|tests|python|php|docs)/[\w/.]+\.\w+)`", page))


def test_the_proof_names_every_run_of_the_models():
    rows = (ROOT / "tests/model/verdicts.txt").read_text().splitlines()
    runs = {row.split("|")[0].strip() for row in rows if row and not row.startswith("#")}
    page = (ROOT / "docs/proof.md").read_text()
    named = set(re.findall(r"`([a-z][a-z0-9-]*)`", page)) - {"drift", "agreed", "core", "planned", "limit"}
    assert len(runs) > 40 and named == runs, sorted(named ^ runs)
