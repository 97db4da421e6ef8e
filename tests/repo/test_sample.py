"""What runs of cases that are much alike, where the run has a sample."""

import os
import re
import subprocess
import sys

import pytest

from test_late import ROOT, repository  # noqa: F401

CASES = """
@pytest.mark.one_of("kind")
@pytest.mark.parametrize("kind", "abc")
def test_kind(kind): pass

@pytest.mark.one_of("page", "docs/page.md")
def test_page(): pass

@pytest.mark.one_of("page")
def test_other_page(): pass

def test_alone(): pass
"""
PAGE = "Words.\n\n    redlock doctor\n"


def chosen(repository, sample, *options):  # noqa: F811
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests/kit"), "REDLOCK_SAMPLE": sample}
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", repository.file, *options]
    said = subprocess.run(command, cwd=repository.folder, env=environment, capture_output=True, text=True).stdout
    return re.findall(r"::test_(\S+)", said)


@pytest.fixture
def sampled(repository):  # noqa: F811
    repository.write("docs/page.md", PAGE)
    repository.commit(CASES)
    return lambda *sample: chosen(repository, *sample)


def test_a_sample_has_one_of_each_name_and_in_time_all(sampled):
    assert sampled("0000000f") == ["kind[a]", "page", "alone"]
    assert sampled("0000001f") == ["kind[b]", "other_page", "alone"]
    assert sampled("0000002f") == ["kind[c]", "page", "alone"]
    assert len(sampled("")) == 6


def test_parts_of_all_cases_are_in_time_all(sampled):
    parts = [sampled("", "--sample", text * 7, "--of", "3") for text in "2468"]
    assert all(len(part) < 6 for part in parts) and len({*sum(parts, [])}) == 6


@pytest.mark.parametrize("page, runs", [(PAGE.replace("Words", "Others"), False), (PAGE.replace("doctor", "ls"), True)])
def test_a_page_with_other_commands_is_tested(sampled, repository, page, runs):  # noqa: F811
    repository.write("docs/page.md", page)
    assert ("page" in sampled("0000001f")) == runs
    repository.git("commit", "-q", "-a", "-m", "docs: say it otherwise")
    assert ("page" in sampled("0000001f")) == runs
