"""Builds the extension libredlock._core and the command redlock; everything else stands in pyproject.toml."""

import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel

IS_LINUX = sys.platform == "linux"
if not IS_LINUX:
    if sys.platform != "darwin" and "bsd" not in sys.platform:
        sys.exit(f"libredlock is for Linux, and for development on macOS and BSD; this is {sys.platform}")
    print(f"libredlock on {sys.platform}, without the command redlock: for development; not tested there")

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "bindings"))
from cdef import has_stable_abi, version  # noqa: E402
from libraries import BUNDLED_FLAGS, library  # noqa: E402

SBOM = ROOT / "third_party/sbom.cdx.json"  # in source distributions, of the libraries beside it


def listed(name):
    return (ROOT / name).read_text().split()


def sources_of_the_command():
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / "core/cli").glob("*.c"))


class build_command(Distribution().get_command_class("build_scripts")):
    """The program as a script, so that pip installs and removes it. The core's objects come from build_ext."""

    def get_source_files(self):
        return []  # MANIFEST.in has them

    def run(self):
        self.run_command("build_ext")
        extension = self.get_finalized_command("build_ext")
        compiler, folder = extension.compiler, extension.build_temp
        hiredis, jansson, popt = (library(name) for name in ("hiredis", "jansson", "popt"))
        objects = compiler.object_filenames(listed("core/sources.txt") + hiredis.sources, output_dir=folder)
        objects += compiler.compile(
            sources_of_the_command(), output_dir=folder, macros=[("_GNU_SOURCE", "")],
            include_dirs=["core/include", "core/src"],
            extra_postargs=["-std=c11", "-O2", *hiredis.cflags, *jansson.cflags, *popt.cflags])
        for own in jansson, popt:
            if own.sources:
                objects += compiler.compile(own.sources, output_dir=folder, macros=[("_GNU_SOURCE", "")],
                                            extra_postargs=["-O2", *BUNDLED_FLAGS, *own.cflags])
        self.mkpath(self.build_dir)
        compiler.link_executable(
            objects, "redlock", output_dir=self.build_dir,
            extra_postargs=["-s", "-pie", "-Wl,-z,relro", "-Wl,-z,now", *jansson.libs, *popt.libs, *hiredis.libs,
                            "-pthread", "-ldl", "-lm"])


class wheel_with_sbom(bdist_wheel):
    """What was linked in stands in the wheel, where PEP 770 has it."""

    def egg2dist(self, egginfo_path, distinfo_path):
        super().egg2dist(egginfo_path, distinfo_path)
        if SBOM.exists():
            target = Path(distinfo_path, "sboms/libredlock.cdx.json")
            target.parent.mkdir()
            target.write_bytes(SBOM.read_bytes())


setup(
    version=version(),
    cffi_modules=["bindings/cffi_build.py:ffibuilder"],
    scripts=["redlock"] if IS_LINUX else [],
    cmdclass={"build_scripts": build_command, "bdist_wheel": wheel_with_sbom},
    options={"bdist_wheel": {"py_limited_api": "cp39"}} if has_stable_abi() else {},
)
