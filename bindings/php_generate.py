"""Writes the C of the PHP extension: runs SWIG on redlock.i and finishes what SWIG leaves open.

SWIG calls every argument $arg1, knows no PHP namespaces and registers helper classes in the global one. So this puts
the names of redlock.i into the argument descriptions and the classes into Redlock\\Native, and drops the helpers and
what SWIG puts into the global namespace; what a macro can change is changed in redlock.i. What it expects to find and
does not is an error, so that a SWIG that writes something else is noticed here.

    python3 bindings/php_generate.py                   php/redlock_wrap.c, for phpize in php/
    python3 bindings/php_generate.py --tree DIR        a source tree in DIR that builds without SWIG and repository
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLASSES = {"RedlockNativeClient": r"Redlock\\Native\\Client", "RedlockNativeLock": r"Redlock\\Native\\Lock"}
TREE = ("composer.json", "LICENSE", "core/include/*.h", "core/src/*/*.[ch]", "core/sources.txt",
        "php/config.m4", "php/redlock.map", "php/sources.txt", "php/lib/stubs/*.php",
        "php/redlock_[!w]*.[ch]", "php/tests/*.phpt")


class GenerationError(Exception):
    pass


def run_swig(swig: str, out: Path) -> tuple[str, ElementTree.Element]:
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree.xml"
        code = Path(folder) / "redlock_wrap.c"
        command = [swig, "-php", "-Wall", "-Werror", f"-I{ROOT / 'core/include'}", "-xmlout", str(tree)]
        command += ["-outdir", folder, "-o", str(code), str(ROOT / "bindings/redlock.i")]
        try:
            subprocess.run(command, check=True)
        except FileNotFoundError:
            raise GenerationError(f"swig is {swig!r}, which is not there: install swig 4.1 or pass --swig") from None
        except subprocess.CalledProcessError as error:
            raise GenerationError(f"{swig} failed with status {error.returncode}") from None
        header = (Path(folder) / "php_redlock.h").read_text()
        text = code.read_text().replace('#include "php_redlock.h"\n', header)
        return text, ElementTree.parse(tree).getroot()


def attributes(node: ElementTree.Element) -> dict[str, str]:
    found = node.find("attributelist")
    return {} if found is None else {a.get("name"): a.get("value") for a in found.findall("attribute")}


def camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda m: m.group(1).upper(), name)


def argument_names(tree: ElementTree.Element) -> dict[str, list[str]]:
    """The names of the arguments of each wrapped function, by the suffix of its argument description."""

    def wrapped(parent: ElementTree.Element, kind: str):
        for node in parent.iter(kind):
            facts = attributes(node)
            if "wrapper_method_name" in facts:
                parms = (attributes(p) for p in node.findall("attributelist/parmlist/parm"))
                yield facts["sym_name"], [camel(p["name"]) for p in parms if p["type"] != "void"]

    names = dict(wrapped(tree, "cdecl"))
    for node in tree.iter("class"):
        owner = attributes(node).get("sym_name")
        if owner in CLASSES:
            names |= {f"{owner}_{method}": parms for method, parms in wrapped(node, "cdecl")}
            names |= {f"new_{method}": parms for method, parms in wrapped(node, "constructor")}
    return names


def expect(count: int, what: str) -> None:
    if not count:
        raise GenerationError(f"what SWIG wrote has no {what}: this SWIG is not known to bindings/php_generate.py")


def substitute(pattern: str, replacement, code: str, what: str, flags: int = 0) -> str:
    code, count = re.subn(pattern, replacement, code, flags=flags)
    expect(count, what)
    return code


def name_arguments(code: str, names: dict[str, list[str]]) -> str:
    """One argument description per function, with its own names; SWIG lets functions of one shape share one."""
    head, rest = code.split("/* arginfo subsection */\n", 1)
    section, tail = rest.split("/* class entry subsection */", 1)
    blocks = {m.group(1): m.group(0) for m in
              re.finditer(r"^ZEND_BEGIN_ARG\w+\(swig_arginfo_(\w+),.*?^ZEND_END_ARG_INFO\(\)\n", section, re.M | re.S)}
    expect(len(blocks), "argument descriptions")
    for alias, original in re.findall(r"^#define swig_arginfo_(\w+) swig_arginfo_(\w+)$", section, re.M):
        blocks[alias] = blocks[original].replace(f"swig_arginfo_{original},", f"swig_arginfo_{alias},", 1)
    for suffix, block in blocks.items():
        used, wanted = len(set(re.findall(r"\barg\d+\b", block))), names.get(suffix, [])
        if used != len(wanted):
            raise GenerationError(f"{suffix} has {used} arguments in the code and {len(wanted)} in redlock.i")
        blocks[suffix] = re.sub(r"\barg(\d+)\b", lambda m, w=wanted: w[int(m.group(1)) - 1], block)
    return f"{head}/* arginfo subsection */\n{''.join(blocks.values())}\n/* class entry subsection */{tail}"


def drop(pattern: str, code: str, what: str) -> str:
    return substitute(pattern, "", code, what, re.M | re.S)


def finish(code: str, names: dict[str, list[str]]) -> str:
    code = name_arguments(code, names)
    for symbol, full in CLASSES.items():
        entry = rf'(INIT_CLASS_ENTRY\(internal_ce, "){symbol}"'
        code = substitute(entry, rf'\g<1>{re.escape(full)}"', code, f"class {symbol}")
    methods = r"PHP_METHOD\((?:redlock,\w+|\w+,__(?:set|get|isset))\)|const zend_function_entry class_redlock_functions"
    code = drop(rf"^(?:static )?(?:{methods})[^\n]*\{{.*?^\}};?\n", code, "magic methods or module class")
    classes = r'SWIG_Php_ce_(?:redlock|_\w+)\b|INIT_CLASS_ENTRY\(internal_ce, "(?:redlock"|SWIG\\\\)'
    entries = rf"{classes}|class entry for pointer|PHP_ME\(\w+,__(?:set|get|isset),"
    return drop(rf"^[^\n]*(?:{entries})[^\n]*\n", code, "entries of module class or pointer classes")


def write_tree(tree: Path, code: str) -> None:
    """The layout of the repository with only what the extension is built from."""
    for pattern in TREE:
        for source in ROOT.glob(pattern):
            target = tree / source.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    write(tree / "php/redlock_wrap.c", code)


def write(path: Path, code: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != code:
        path.write_text(code)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--swig", default="swig", help="the SWIG to run, 4.1 or newer (default: swig)")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--output", type=Path, default=ROOT / "php/redlock_wrap.c", help="the C file to write")
    place.add_argument("--tree", type=Path, help="write a complete source tree into this folder instead")
    options = parser.parse_args()
    try:
        code, tree = run_swig(options.swig, options.output)
        code = finish(code, argument_names(tree))
    except GenerationError as error:
        print(f"php_generate.py: {error}", file=sys.stderr)
        return 1
    if options.tree:
        write_tree(options.tree, code)
    else:
        write(options.output, code)
    return 0


if __name__ == "__main__":
    sys.exit(main())
