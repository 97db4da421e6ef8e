"""Waiting where gevent or eventlet has patched the process: only the greenlet that waits stops, never the others."""

from __future__ import annotations

import os
import sys
from _thread import get_native_id
from importlib import import_module
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional
from weakref import ref

from ._core import ffi, lib
from ._hold import AT_ONCE, OK, PENDING, RELEASE

if TYPE_CHECKING:
    from ._client import Client

LOOK_AGAIN_S = 1.0


class Library(NamedTuple):
    """What is needed of gevent or eventlet."""

    select: Callable[..., Any]
    sleep: Callable[[float], object]
    semaphore: Callable[[int], Any]
    current: Callable[[], object]
    in_thread: Callable[..., Any]


def patched() -> Optional[Library]:
    """The library that has patched select or socket, if one has."""
    monkey = sys.modules.get("gevent.monkey")
    if monkey is not None and (monkey.is_module_patched("select") or monkey.is_module_patched("socket")):
        return _gevent()
    patcher = sys.modules.get("eventlet.patcher")
    if patcher is not None and (patcher.is_monkey_patched("select") or patcher.is_monkey_patched("socket")):
        return _eventlet()
    return None


def _gevent() -> Library:
    gevent = import_module("gevent")

    def in_thread(function: Any, *arguments: Any) -> Any:
        return gevent.get_hub().threadpool.apply(function, arguments)

    semaphore = import_module("gevent.lock").Semaphore
    return Library(import_module("gevent.select").select, gevent.sleep, semaphore, gevent.getcurrent, in_thread)


def _eventlet() -> Library:
    eventlet = import_module("eventlet")
    select = import_module("eventlet.green.select").select
    semaphore = import_module("eventlet.semaphore").Semaphore
    in_thread = import_module("eventlet.tpool").execute
    return Library(select, eventlet.sleep, semaphore, eventlet.getcurrent, in_thread)


class Greenlets:
    """The operations that greenlets of one client wait for.

    One of the greenlets selects on the client's descriptor for all of them and wakes those whose operation has ended.
    When its own has ended it leaves that to another one.
    """

    def __init__(self, client: Client, library: Library, drive_thread: Callable[..., int]) -> None:
        self._client = ref(client)
        self._drive_thread = drive_thread
        self._descriptor = lib.redlock_client_fd(client._handle)
        self._library = library
        self.in_thread = library.in_thread
        self._turns: dict[int, tuple[Any, Any]] = {}  # who waits, and the handle, by a number of the handle
        self._has_reader = False
        self._tag = ffi.new("uint64_t *")

    def drive(self, client: Client, handle: Any, operation: int, argument: int) -> int:
        if get_native_id() != os.getpid():  # any thread but the main one has no hub that its waiting could stop
            return self._drive_thread(client, handle, operation, argument)
        return self._complete(client, handle, lambda: lib.redlock_lock_start(handle, operation | AT_ONCE, argument))

    def run(self, handle: Any, operation: int, argument: int) -> int:
        client: Any = self._client()
        return self.drive(client, handle, operation, argument)

    def wait(self, client: Client, handle: Any) -> int:
        """The end of an operation that was started before the process was patched."""
        return self._complete(client, handle, lambda: OK)

    def _complete(self, client: Client, handle: Any, start: Callable[[], int]) -> int:
        tag = int(ffi.cast("uintptr_t", handle))
        if tag in self._turns:  # also if it has ended, until the greenlet that waits for it has heard of that
            return int(lib.REDLOCK_IN_FLIGHT)
        lib.redlock_lock_set_tag(handle, tag)
        turn = self._library.semaphore(0)
        self._turns[tag] = turn, handle
        try:
            status: int = start()
            if status != OK:
                return status
            while True:
                status = lib.redlock_lock_status(handle)
                if status != PENDING:
                    return status
                if self._has_reader:
                    turn.acquire()
                else:
                    self._read(client)
        except BaseException:
            lib.redlock_lock_cancel(handle)
            client._process()
            raise
        finally:
            del self._turns[tag]
            self._hand_on()

    def release(self, handle: Any) -> int:
        client = self._client()
        return int(lib.redlock_lock_release(handle)) if client is None else self.drive(client, handle, RELEASE, 0)

    def close(self, client: Client, handle: Any) -> None:
        """Drains the client when all that wait have left it."""
        for turn, waiting in list(self._turns.values()):
            lib.redlock_lock_cancel(waiting)
            turn.release()
        while self._turns:
            self._library.sleep(0)
        self._library.in_thread(client._drain, handle)

    def _read(self, client: Client) -> None:
        self._has_reader = True
        try:
            self._library.select([self._descriptor], [], [], LOOK_AGAIN_S)
        finally:
            self._has_reader = False
        handle = client._handle
        found = lib.redlock_client_advance(handle, self._tag)
        while found == 1:
            if self._tag[0] in self._turns:
                self._turns[self._tag[0]][0].release()
            found = lib.redlock_client_next(handle, self._tag)

    def _hand_on(self) -> None:
        if not self._has_reader:
            for turn, _ in self._turns.values():
                turn.release()
                return
