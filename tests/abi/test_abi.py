"""The types of what is exported, against the recorded dump redlock.abi (libabigail): it only grows.

    test_abi.py     records it anew
"""
import re
import subprocess
import sys
from pathlib import Path

import pytest

from test_symbols import BUILD, ROOT

sys.path.insert(0, str(ROOT / "bindings"))
import cdef  # noqa: E402

RECORDED = ROOT / "tests/abi/redlock.abi"
CHANGED = 4  # bits of abidiff's exit status


def stand_in(folder, header):
    """A library of the header alone: its functions without their insides, and a variable of each enum."""
    text = cdef.declarations(header)
    functions = re.findall(r"^(.+redlock_\w+\(.*\));$", text.replace(",\n", ", "), re.M)
    enums = re.findall(r"^enum (\w+)", text, re.M)
    assert len(functions) == len(cdef.functions(header)) and len(enums) > 5
    source = folder / "redlock.c"
    source.write_text('#include "%s"\n' % header
                      + "".join(f"{f} {{ {'' if f.startswith('void ') else 'return 0;'} }}\n" for f in functions)
                      + "".join(f'__attribute__((visibility("default"))) enum {name} {name};\n' for name in enums))
    library = folder / "redlock.so"
    subprocess.run(["gcc", "-g", "-shared", "-fPIC", "-fvisibility=hidden", "-o", library, source], check=True)
    return library


def dump(library):
    return subprocess.run(["abidw", "--no-show-locs", "--no-corpus-path", "--no-comp-dir-path", library], check=True,
                          capture_output=True, text=True).stdout


def compare(recorded, library):
    done = subprocess.run(["abidiff", "--no-added-syms", recorded, library], capture_output=True, text=True)
    return done.returncode, done.stdout


@pytest.fixture
def changed(tmp_path):
    """changed(old, new): the stand-in of a header in which that is different."""
    def make(old, new):
        text = cdef.HEADER.read_text()
        assert text.count(old) == 1, old
        header = tmp_path / "redlock.h"
        header.write_text(text.replace(old, new))
        return stand_in(tmp_path, header)

    return make


def test_the_header_declares_what_was_recorded(tmp_path):
    assert compare(RECORDED, stand_in(tmp_path, cdef.HEADER)) == (0, "")


def test_the_library_has_the_functions_that_were_recorded():
    """With these types; variables of enums are in the stand-in only."""
    done = subprocess.run(["abidiff", "--no-added-syms", "--ignore-soname", "--headers-dir2", ROOT / "core/include",
                           RECORDED, BUILD / "libredlock.so"], capture_output=True, text=True)
    assert "0 Removed, 0 Changed" in done.stdout.splitlines()[0], done.stdout


def test_a_function_may_be_added(changed):
    library = changed("REDLOCK_API const char *redlock_version(void);",
                      "REDLOCK_API const char *redlock_version(void);\nREDLOCK_API int redlock_new(int one);")
    assert compare(RECORDED, library)[0] == 0


@pytest.mark.parametrize("old, new, name", [
    ("REDLOCK_BUSY = 2,", "REDLOCK_BUSY = 22,", "REDLOCK_BUSY"),
    ("redlock_client_drain(redlock_client *client, int64_t limit_ms)", "redlock_client_drain(redlock_client *client)",
     "redlock_client_drain"),
    ("REDLOCK_API int64_t redlock_lock_validity_ms", "REDLOCK_API int redlock_lock_validity_ms",
     "redlock_lock_validity_ms"),
    ("int redlock_lock_cancel(", "int redlock_lock_abort(", "redlock_lock_cancel"),
])
def test_what_was_recorded_may_not_change(changed, old, new, name):
    code, said = compare(RECORDED, changed(old, new))
    assert code & CHANGED and name in said


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        RECORDED.write_text(dump(stand_in(Path(folder), cdef.HEADER)))
