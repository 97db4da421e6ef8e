"""The compiled core: cffi's two objects. The functions and constants are those of core/include/redlock.h,
and what bindings/cffi_build.py adds."""

from typing import Any

ffi: Any
lib: Any
