"""The client of the synchronous surface."""

from __future__ import annotations

import threading
import time
from _thread import _local
from types import TracebackType
from typing import Any, Callable, Iterable, Literal, Optional, TypeVar, Union, overload
from weakref import ref

from . import _greenlets
from ._base import ClientBase, Report
from ._blocking import drive, wait
from ._core import lib
from ._election import options_of
from ._errors import Busy
from ._listing import Listing
from ._lock import shared
from ._notify import notifier
from ._options import list_ms, with_permits
from ._signature import name_options
from ._thread_lock import Election, Hold, Lock, RLock, Seat
from .types import (
    ClientOptions,
    Decorator,
    DecoratorOr,
    DecoratorWithHold,
    LockOptions,
    Named,
    Resource,
    Resources,
    Seconds,
    Unpack,
    WithLockOptions,
)

T = TypeVar("T")
OnLost = Optional[Callable[[Hold], object]]
AnyClient = TypeVar("AnyClient", bound="Client")


class Client(ClientBase):
    """A set of nodes, shared by any number of threads; `with Client() as client:` closes it at the end.

    nodes: URLs, or one str of URLs separated by commas; None takes them from the environment variable REDLOCK_NODES.
        `redis://[user:password@]host[:port][/database]`, `rediss://...` or `unix://[user:password@]/path[?db=n]`
    options: the defaults of all its locks, and the client's own (docs/options.md); durations are seconds or
        timedelta. `wait` is None: for ever.

    Opening never blocks: the nodes are connected to in the background. Raises InvalidOption or TypeError.
    """

    # of lock(), adopt() and with_lock(), of rlock() and of election(); libredlock.otel has others
    _lock_type: type[Lock] = Lock
    _rlock_type: type[RLock] = RLock
    _seat_type: Any = Seat
    _in_memory = "MemoryClient"

    def __init__(self, nodes: Union[None, str, Iterable[str]] = None, **options: Unpack[ClientOptions]) -> None:
        self._greenlets: Any = None
        super().__init__(nodes, **options)
        self._choose_how_to_wait()

    def _choose_how_to_wait(self) -> None:
        """As threads do, in C, or as greenlets."""
        library = _greenlets.patched()
        self._greenlets = None if library is None else _greenlets.Greenlets(self, library, drive)
        if library is None:
            self._drive: Callable[[Client, Any, int, int], int] = drive
            self._run: Callable[[Any, int, int], int] = lib.run_operation
            self._release: Callable[[Any], int] = lib.redlock_lock_release
            self._release_held: Callable[[Any], int] = lib.release_held
            self._current: Callable[[], object] = _current_thread
            self._pause: Callable[[float], object] = time.sleep
        else:
            self._drive, self._run = self._greenlets.drive, self._greenlets.run
            self._release = self._greenlets.release
            self._current, self._pause = lambda: ref(library.current()), library.sleep
            self._release_held = lambda handle: -1

    def _is_patched(self) -> bool:
        """Whether greenlets wait; the process may have been patched since its first lock."""
        if self._greenlets is None and _greenlets.patched() is not None:
            self._choose_how_to_wait()
        return self._greenlets is not None

    def lock(self, resource: Resources, *, on_lost: OnLost = None, **options: Unpack[LockOptions]) -> Lock:
        return self._lock_type(self, resource, options, "lock", on_lost)

    def rlock(self, resource: Resource, *, on_lost: OnLost = None, **options: Unpack[LockOptions]) -> RLock:
        return shared(self, self._rlock_type, resource, options, on_lost)  # type: ignore[no-any-return]

    def semaphore(
        self, resource: Resource, count: Optional[int] = None, /, *, on_lost: OnLost = None,
        **options: Unpack[LockOptions],
    ) -> Lock:
        return self._lock_type(self, resource, with_permits(count, options), "semaphore", on_lost)

    def election(self, resource: Resource, *, on_lost: OnLost = None, **options: Unpack[LockOptions]) -> Election:
        return Election(self._seat_type(self, resource, options_of(options), "election", on_lost))

    def adopt(self, resource: Resources, token: str, *, on_lost: OnLost = None, **options: Unpack[LockOptions]) -> Hold:
        hold: Hold = self._lock_type(self, resource, options, "adopt", on_lost)._adopt(token)
        return hold

    @overload
    def with_lock(
        self, resource: Named, *, hold: str, on_busy: Any = "raise", on_lost: OnLost = None,
        **options: Unpack[WithLockOptions],
    ) -> DecoratorWithHold: ...

    @overload
    def with_lock(
        self, resource: Named, *, on_busy: Literal["raise"] = "raise", on_lost: OnLost = None,
        **options: Unpack[WithLockOptions],
    ) -> Decorator: ...

    @overload
    def with_lock(
        self, resource: Named, *, on_busy: Literal["skip"], on_lost: OnLost = None,
        **options: Unpack[WithLockOptions],
    ) -> DecoratorOr[None]: ...

    @overload
    def with_lock(
        self, resource: Named, *, on_busy: Callable[[Busy], T], on_lost: OnLost = None,
        **options: Unpack[WithLockOptions],
    ) -> DecoratorOr[T]: ...

    @overload
    def with_lock(
        self, resource: Named, *, on_busy: T, on_lost: OnLost = None,
        **options: Unpack[WithLockOptions],
    ) -> DecoratorOr[T]: ...

    def with_lock(
        self, resource: Named, *, on_busy: Any = "raise", hold: Optional[str] = None, reentrant: bool = False,
        keep: Optional[Seconds] = None, on_lost: OnLost = None, **options: Unpack[LockOptions],
    ) -> Any:
        from ._decorator import BlockingDecorator

        return BlockingDecorator(self, resource, on_busy, hold, reentrant, keep, {"on_lost": on_lost}, options)

    def status(self, resource: Resources, *, permits: Optional[int] = None, slot: Optional[int] = None) -> Report:
        looks = self._looks(resource, permits, slot)
        return self._reported(resource, looks, self._ask(lib.REDLOCK_INSPECT, sum(looks, [])))

    def locks(self, pattern: Resource = "*", *, timeout: Optional[Seconds] = None) -> Listing:
        probe = self._probe(pattern)
        return self._listed(probe, self._ask(lib.REDLOCK_LIST, [probe], list_ms(timeout))[0])

    def release(
        self, resource: Resources, *, force: bool = False, permits: Optional[int] = None, slot: Optional[int] = None
    ) -> int:
        probe = self._removal(resource, force, permits, slot)
        return self._removed(probe, self._ask(lib.REDLOCK_REMOVE, [probe])[0])

    def _ask(self, operation: int, probes: list[Any], argument: int = 0) -> list[int]:
        """All at the same time: their statuses."""
        started = [lib.redlock_lock_start(probe._handle, operation, argument) for probe in probes]
        return [status or wait(self, probe._handle) for status, probe in zip(started, probes)]

    def check(self) -> dict[str, Any]:
        self._ask(lib.REDLOCK_INSPECT, [self._probe("check")])
        return self.describe()

    def bootstrap(
        self, *, new: bool = False, yes: bool = False, replace: bool = False, dry: bool = False
    ) -> list[dict[str, Any]]:
        run = self._bootstrapper(new, yes, replace, dry)
        return run() if self._greenlets is None else self._greenlets.in_thread(run)

    def close(self) -> None:
        greenlets = self._greenlets
        self._leave(None if greenlets is None else lambda handle: greenlets.close(self, handle))
        for hold in self._watched_holds():
            hold._tell_if_lost()
        notifier.join()

    def __enter__(self: AnyClient) -> AnyClient:
        """The client itself."""
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], failure: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        """Closes the client."""
        self.close()

    # ---- how the process waits --------------------------------------------------------------------------------------

    def _listen(self) -> None:
        self._choose_how_to_wait()
        notifier.add(self)

    def _leave(self, drain: Optional[Callable[[Any], object]] = None) -> None:
        super()._leave(drain)
        notifier.wake()


name_options(Client)


class Thread:
    """What stands for a thread as long as it lives, and for no later one: the numbers of threads are used again."""

    __slots__ = ("_number", "__weakref__")

    def __init__(self) -> None:
        self._number = threading.get_ident()

    def __str__(self) -> str:
        return next((one.name for one in threading.enumerate() if one.ident == self._number), f"number {self._number}")


_of_thread = _local()


def _current_thread() -> object:
    try:
        return _of_thread.reference
    except AttributeError:
        _of_thread.identity = identity = Thread()
        _of_thread.reference = reference = ref(identity)
        return reference
