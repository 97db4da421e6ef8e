"""--metrics, as the tools of Prometheus read it."""
import re
import subprocess
import urllib.request

import pytest

from command import BIN, ROOT, UNAVAILABLE
from testing import eventually, free_port

PROMTOOL, NODE_EXPORTER = "promtool", "prometheus-node-exporter"


@pytest.fixture(params=[("doctor",), ("status", "orders:42"), ("status", "a\"b\\c\nd", "x")],
                ids=["doctor", "status", "status-escaped"])
def figures(request, redlock, nodes):
    nodes[0].kill()
    command, *rest = request.param
    done = redlock(command, "--metrics", *rest)
    assert done.returncode == 0, done.stderr
    return done.stdout


def families(text):
    return re.findall(r"^# TYPE (\S+) ", text, re.M)


def test_metrics_are_of_nodes_and_the_resource_only(figures):
    """Counters of the command itself would be taken for those of the programs that have the same names."""
    assert [name for name in families(figures) if not re.match("redlock_(node|resource|doctor)_", name)] == []
    votes = [line.split()[-1] for line in figures.splitlines() if line.startswith("redlock_node_votes_now{")]
    assert votes == (["0"] + 4 * ["1"] if "redlock_doctor_timestamp_seconds" in families(figures) else [])


def test_a_node_that_is_down_has_no_round_trip(figures, nodes):
    told = dict(re.findall(r'^redlock_node_rtt_seconds{node="(.*)"} (.*)$', figures, re.M))
    of_nodes = "redlock_node_rtt_seconds" in families(figures)
    assert list(told) == [node.name for node in nodes.nodes[of_nodes:] if of_nodes]
    assert all(float(seconds) > 0 for seconds in told.values()), told


def test_the_reference_has_every_family(figures):
    page = (ROOT / "docs/metrics.md").read_text()
    assert set(families(figures)) <= set(re.findall(r"^\| `(\w+)`", page, re.M))


def test_the_reference_has_every_family_of_a_held_resource(redlock, nodes):
    figures = redlock("run", "held", "--", BIN, "status", "--metrics", "held").stdout
    page = (ROOT / "docs/metrics.md").read_text()
    assert "redlock_resource_remaining_seconds" in families(figures)
    assert set(families(figures)) <= set(re.findall(r"^\| `(\w+)`", page, re.M))


def test_every_sample_belongs_to_the_family_above_it(figures):
    name = None
    for line in figures.splitlines():
        if line.startswith("# TYPE "):
            name = line.split()[2]
        elif line.startswith("# HELP "):
            assert line.split()[2] == name and len(line.split()) > 3
        else:
            assert re.match(re.escape(name) + r"[{ ]", line), line


def test_no_sample_comes_twice(redlock, nodes):
    """The collector refuses the whole file if one does."""
    done = redlock("status", "--metrics", "x", b"a\xff", "x", b"a\xfe", b"a\xff")
    samples = [line.rsplit(" ", 1)[0] for line in done.stdout.splitlines() if not line.startswith("#")]
    assert len(samples) == len(set(samples)) and done.stdout.count('verdict="free"} 1\n') == 3


@pytest.mark.parametrize("command", [("doctor",), ("status", "orders:42"), ("status", "--permits", "2", "gpu")],
                         ids=["doctor", "status", "permits"])
def test_metrics_of_an_outage_are_printed_with_status_0(redlock, nodes, command):
    """The file of a collector must have them, and a script that fails would keep the old one."""
    for node in nodes.nodes[:3]:
        node.kill()
    done = redlock(*command, "--metrics", "--connect-timeout", "500ms")
    assert done.returncode == 0, done.stderr
    if command == ("doctor",):
        votes = re.findall(r"^redlock_node_votes_now{.*} (.)$", done.stdout, re.M)
        assert votes == 3 * ["0"] + 2 * ["1"]
    else:
        assert 'verdict="unknown"} 1\n' in done.stdout
    assert redlock(*command, "--connect-timeout", "500ms").returncode == UNAVAILABLE


def test_promtool_finds_nothing(figures):
    done = subprocess.run([PROMTOOL, "check", "metrics"], input=figures, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_textfile_collector_reads_it_beside_others(redlock, figures, tmp_path):
    """Those of doctor, and of another resource: a sample that stands in two files would be an error."""
    (tmp_path / "figures.prom").write_text(figures)
    (tmp_path / "other.prom").write_text(redlock("status", "--metrics", "other").stdout)
    if "redlock_doctor_" not in figures:
        (tmp_path / "doctor.prom").write_text(redlock("doctor", "--metrics").stdout)
    port = free_port()
    exporter = subprocess.Popen([NODE_EXPORTER, "--collector.disable-defaults", "--collector.textfile",
                                 "--collector.textfile.directory=%s" % tmp_path,
                                 "--web.listen-address=127.0.0.1:%d" % port],
                                stderr=subprocess.DEVNULL)

    def scraped():
        try:
            with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % port) as answer:
                return answer.read().decode()
        except OSError:
            return None

    try:
        text = eventually(scraped, 60, "the exporter answers")
    finally:
        exporter.kill()
        exporter.wait()
    assert "\nnode_textfile_scrape_error 0\n" in text
    assert "\nredlock_node_votes_now{" in text and "\nredlock_resource_verdict{" in text
    samples = {line for line in figures.splitlines() if not line.startswith("#")}
    names = {re.split("[{ ]", line)[0] for line in samples}
    assert names <= {re.split("[{ ]", line)[0] for line in text.splitlines()}
