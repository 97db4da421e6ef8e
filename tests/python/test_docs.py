"""Every program in the pages runs as it stands there."""

import re
from pathlib import Path

import pytest

from patience import GENEROUS_TIMEOUTS

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"


PATIENT = f"""
from libredlock._base import ClientBase

def patient(self, nodes=None, init=ClientBase.__init__, **options):
    init(self, nodes, **{{**{GENEROUS_TIMEOUTS}, **options}})

ClientBase.__init__ = patient
"""


def programs(page):
    text = (DOCS / page).read_text()
    for match in re.finditer(r"```python\n(.*?)```", text, re.S):
        heading = re.findall(r"^#+ (.*)$", text[: match.start()], re.M)[-1]
        yield pytest.param(match.group(1), id=heading)


PAGE = list(programs("python.md"))


def test_the_page_has_ten_recipes():
    assert len([page for page in PAGE if page.id[:1].isdigit()]) == 10


@pytest.mark.parametrize("source", PAGE)
def test_every_program_of_python_md_runs(script, nodes, source):
    if "10.0.0.1" in source:  # programs of three nodes; the others use REDLOCK_NODES
        nodes.bootstrap(nodes=nodes[:3])
    for number, url in enumerate(nodes.urls[:3], 1):
        source = source.replace(f"redis://10.0.0.{number}", url)
    status, out, err = script(PATIENT + source).end()
    others = [line for line in err.splitlines() if not line.startswith("node_down ")]  # recipe 10 kills a node
    assert status == 0 and others == [], out + err


BODIES = """
import libredlock

client = libredlock.Client()


class Branch(list):
    def __iter__(self):
        print(tree.owned())
        return super().__iter__()


def read():
    print(client.status("report:7").verdict)


def transfer():
    print(client.status("account:2").held)


def import_all():
    print(client.status("import").verdict)


def train(slot):
    print("slot", slot)


def schedule(number):
    print("term", number)
    raise SystemExit  # else it leads on


"""
SAID = {
    "Shared": "shared",
    "Several resources": "True",
    "Permits": "slot [0-3]",
    "Re-entrant": "True\nTrue\nTrue",
    "Hash": "held",
    "Leader": "term \\d{16}",
}


@pytest.mark.parametrize("source", list(programs("kinds.md")))
def test_every_program_of_kinds_md_runs(script, nodes, source, request):
    heading = request.node.callspec.id
    more = "prune(Branch([Branch([Branch()])]))\n" if heading == "Re-entrant" else ""
    status, out, err = script(PATIENT + BODIES + source + more).end()
    assert (status, err) == (0, "") and re.fullmatch(SAID[heading], out), out + err
