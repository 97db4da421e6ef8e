#!/usr/bin/env python3
"""The started shape of the library through cffi in API mode, without the Python package.

    lock_cffi.py [RESOURCE]     nodes from REDLOCK_NODES; redlock.h and libredlock where the compiler finds them
"""
import importlib
import os
import select
import sys
import tempfile
from pathlib import Path

import cffi

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bindings"))
import cdef  # noqa: E402


def load():
    """Compiles the wrapper of everything that redlock.h declares."""
    builder = cffi.FFI()
    builder.cdef(cdef.declarations())
    builder.set_source("redlock_example", "#include <redlock.h>", libraries=["redlock"])
    with tempfile.TemporaryDirectory() as folder:
        builder.compile(tmpdir=folder)
        sys.path.insert(0, folder)
        module = importlib.import_module("redlock_example")
    return module.ffi, module.lib


ffi, lib = load()


def text(call, *handle):
    buf = ffi.new("char[1024]")
    call(*handle, buf, len(buf))
    return ffi.string(buf).decode()


def finish(client, lock):
    """What an event loop does: waits for the one descriptor and lets the library work."""
    while lib.redlock_lock_status(lock) == lib.REDLOCK_PENDING:
        select.select([lib.redlock_client_fd(client)], [], [])
        lib.redlock_client_process(client)
    return lib.redlock_lock_status(lock)


def run(client, lock, operation, argument):
    status = lib.redlock_lock_start(lock, operation, argument)
    return finish(client, lock) if status == lib.REDLOCK_OK else status


def main(resource):
    client = ffi.gc(lib.redlock_client_new(), lib.redlock_client_free)
    for name, value in (b"nodes", os.environ.get("REDLOCK_NODES", "").encode()), (b"ttl_ms", b"10000"):
        if lib.redlock_client_set(client, name, value) != lib.REDLOCK_OK:
            return text(lib.redlock_client_message, client)
    if lib.redlock_client_open(client) != lib.REDLOCK_OK:
        return text(lib.redlock_client_message, client)
    lock = ffi.gc(lib.redlock_lock_new(client, resource, len(resource)), lib.redlock_lock_free)
    for operation, argument in (lib.REDLOCK_ACQUIRE, 60000), (lib.REDLOCK_EXTEND, 20000), (lib.REDLOCK_RELEASE, 0):
        status = run(client, lock, operation, argument)
        print(ffi.string(lib.redlock_status_name(status)).decode(), text(lib.redlock_lock_message, lock))
        if status != lib.REDLOCK_OK:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main((sys.argv[1] if len(sys.argv) > 1 else "orders:42").encode()))
