"""Builds the extension libredlock._core; everything else stands in pyproject.toml."""

import sys
from pathlib import Path

from setuptools import setup

if sys.platform != "linux":
    sys.exit(f"libredlock is for Linux only: it needs epoll, eventfd and timerfd, and this is {sys.platform}")

sys.path.insert(0, str(Path(__file__).resolve().parent / "bindings"))
from cdef import has_stable_abi, version  # noqa: E402

setup(
    version=version(),
    cffi_modules=["bindings/cffi_build.py:ffibuilder"],
    options={"bdist_wheel": {"py_limited_api": "cp39"}} if has_stable_abi() else {},
)
