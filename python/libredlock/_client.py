"""The client of the synchronous surface."""

from __future__ import annotations

from _thread import _local, allocate_lock
from types import TracebackType
from typing import Any, Callable, Dict, Iterable, List, Literal, Optional, Set, Type, TypeVar, Union, overload

from . import _greenlets
from ._base import ClientBase, Report
from ._blocking import drive
from ._core import lib
from ._election import options_of
from ._notify import notifier
from ._options import with_permits
from ._queue import Ticket
from ._reentrant import shared
from ._thread_election import Election, Seat
from ._thread_lock import Lock
from ._thread_rlock import RLock
from .types import ClientOptions, Decorator, DecoratorOr, LockOptions, Named, Resource, Resources, Unpack

T = TypeVar("T")
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
    _lock_type: Any = Lock
    _rlock_type: Any = RLock
    _seat_type: Any = Seat

    def __init__(self, nodes: Union[None, str, Iterable[str]] = None, **options: Unpack[ClientOptions]) -> None:
        self._sleepers: Set[Ticket] = set()
        self._is_leaving = False
        self._greenlets: Any = None
        super().__init__(nodes, **options)

    def _choose_how_to_wait(self) -> None:
        """As threads do, in C, or as greenlets."""
        library = _greenlets.patched()
        self._greenlets = None if library is None else _greenlets.Greenlets(self, library, drive)
        if self._greenlets is None:
            self._drive: Callable[[Client, Any, int, int], int] = drive
            self._release: Callable[[Any], int] = lib.redlock_lock_release
            self._current: Callable[[], object] = _current_thread
            self._turn: Callable[[], Any] = _closed_turn
        else:
            self._drive, self._release = self._greenlets.drive, self._greenlets.release
            self._current, self._turn = self._greenlets.current, self._greenlets.turn

    def _is_patched(self) -> bool:
        """Whether greenlets wait; the process may have been patched since its first lock."""
        if self._greenlets is None and _greenlets.patched() is not None:
            self._choose_how_to_wait()
        return self._greenlets is not None

    def lock(
        self,
        resource: Resources,
        *,
        on_lost: Optional[Callable[[Lock], object]] = None,
        **options: Unpack[LockOptions],
    ) -> Lock:
        lock: Lock = self._lock_type(self, resource, options, "lock", on_lost)
        return lock

    def rlock(
        self,
        resource: Resource,
        *,
        on_lost: Optional[Callable[[Lock], object]] = None,
        **options: Unpack[LockOptions],
    ) -> RLock:
        def make() -> Any:
            return self._rlock_type(self, resource, options, "rlock", on_lost)

        lock: RLock = shared(self, make, resource, (options, on_lost))
        return lock

    def semaphore(
        self,
        resource: Resource,
        count: Optional[int] = None,
        /,
        *,
        on_lost: Optional[Callable[[Lock], object]] = None,
        **options: Unpack[LockOptions],
    ) -> Lock:
        given = with_permits(count, options)
        lock: Lock = self._lock_type(self, resource, given, "semaphore", on_lost)
        return lock

    def election(
        self,
        resource: Resource,
        *,
        on_lost: Optional[Callable[[Lock], object]] = None,
        **options: Unpack[LockOptions],
    ) -> Election:
        seat = self._seat_type(self, resource, options_of(options), "election", on_lost)
        seat.election = election = Election(seat)
        return election

    def adopt(
        self,
        resource: Resources,
        token: str,
        *,
        on_lost: Optional[Callable[[Lock], object]] = None,
        **options: Unpack[LockOptions],
    ) -> Lock:
        lock: Lock = self._lock_type(self, resource, options, "adopt", on_lost)
        lock._adopt(token)
        if on_lost is not None:
            lock._watch()
        return lock

    @overload
    def with_lock(
        self,
        resource: Named,
        *,
        on_busy: Literal["raise"] = "raise",
        on_lost: Optional[Callable[[Lock], object]] = None,
        **options: Unpack[LockOptions],
    ) -> Decorator: ...

    @overload
    def with_lock(
        self,
        resource: Named,
        *,
        on_busy: Literal["skip"],
        on_lost: Optional[Callable[[Lock], object]] = None,
        **options: Unpack[LockOptions],
    ) -> DecoratorOr[None]: ...

    @overload
    def with_lock(
        self,
        resource: Named,
        *,
        on_busy: T,
        on_lost: Optional[Callable[[Lock], object]] = None,
        **options: Unpack[LockOptions],
    ) -> DecoratorOr[T]: ...

    def with_lock(
        self,
        resource: Named,
        *,
        on_busy: Any = "raise",
        on_lost: Optional[Callable[[Lock], object]] = None,
        **options: Unpack[LockOptions],
    ) -> Any:
        from ._decorator import BlockingDecorator

        def lock(name: Resource) -> Any:
            return self._lock_type(self, name, options, "with_lock", on_lost)

        return BlockingDecorator(lock, resource, on_busy, options)  # type: ignore[arg-type]

    def status(self, resource: Resource) -> Report:
        lock = Lock(self, resource, {}, "status", None)
        return self._report(lock, self._drive(self, lock._handle, lib.REDLOCK_INSPECT, 0))

    def check(self) -> Dict[str, Any]:
        lock = Lock(self, "check", {}, "check", None)
        self._drive(self, lock._handle, lib.REDLOCK_INSPECT, 0)
        return self.describe()

    def bootstrap(
        self, *, new: bool = False, yes: bool = False, replace: bool = False, dry: bool = False
    ) -> List[Dict[str, Any]]:
        from ._bootstrap import bootstrap, mode_of

        mode = mode_of(new, yes, replace, dry)
        lock = Lock(self, "bootstrap", {}, "bootstrap", None)  # keeps the core's client if this one is closed
        handle, nodes = self._opened(), list(self._nodes)

        def run() -> List[Dict[str, Any]]:
            with self._bootstrapping:
                return bootstrap(handle, nodes, mode)

        told: List[Dict[str, Any]] = run() if self._greenlets is None else self._greenlets.in_thread(run)
        del lock
        return told

    def close(self) -> None:
        if self._greenlets is None:
            self._leave()
            return
        self._wake_sleepers()
        try:
            self._tell_the_last()
        finally:
            self._greenlets.close(self._take_handle())
            notifier.wake()

    def __enter__(self: AnyClient) -> AnyClient:
        """The client itself."""
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], failure: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        """Closes the client."""
        self.close()

    # ---- how the process waits --------------------------------------------------------------------------------------

    def _register(self) -> None:
        super()._register()
        self._choose_how_to_wait()
        notifier.add(self)

    def _wake_sleepers(self) -> None:
        self._is_leaving = True
        for ticket in list(self._sleepers):
            if ticket.wake is not None:
                ticket.wake()

    def _leave(self) -> None:
        self._wake_sleepers()
        super()._leave()
        notifier.wake()

    def _forked(self) -> None:
        super()._forked()
        self._sleepers = set()


def _closed_turn() -> Any:
    turn = allocate_lock()
    turn.acquire()
    return turn


_of_thread = _local()


def _current_thread() -> object:
    """What stands for this thread, and for no later one: the numbers of threads are used again."""
    try:
        return _of_thread.identity
    except AttributeError:
        _of_thread.identity = identity = object()
        return identity
