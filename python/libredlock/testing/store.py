"""What nodes would keep of the locks of MemoryClient and AsyncMemoryClient, and handles on it like the core's."""
from __future__ import annotations

import os
import secrets
import socket
import threading
from collections import defaultdict
from typing import Any, Callable, Dict, List, Optional, Set, Tuple
from weakref import WeakSet

from .._core import ffi, lib
from .._errors import Holder, Status, Vote
from .._listing import Listed, Waiter
from .._native import text
from .._process import generation

SHORTEST_MS = 20  # of all leases
OK, PENDING, LOST = lib.REDLOCK_OK, lib.REDLOCK_PENDING, lib.REDLOCK_LOST


class Entry:
    """One lock that somebody holds, or did."""

    def __init__(self, handle: Handle, now_ms: int) -> None:
        options = handle.option
        self.client: Optional[object] = handle.client
        self.thread = handle.thread
        self.names, self.since_ms = handle.names, now_ms
        self.token = secrets.token_hex(20)
        self.client_name = options("client_name")
        self.is_shared, self.renews = options("shared") == "true", options("renew") == "true"
        self.is_hash = options("layout") == "hash"
        self.slot, self.permits = 0, int(options("permits"))
        self.lease_ms = int(options("ttl_ms"))  # which renewals go on with
        self.ends_ms = now_ms + self.lease_ms
        longest_ms = int(options("max_hold_ms"))
        self.limit_ms = float("inf") if longest_ms < 0 else max(now_ms + longest_ms, self.ends_ms)
        self.loss = 0  # its reason

    def over_ms(self) -> float:
        """When its lease ends, if nobody extends it."""
        return self.limit_ms if self.renews else self.ends_ms

    def left_ms(self, now_ms: int) -> int:
        """Of its lease, which renewals keep at its length."""
        return int(min(self.over_ms() - now_ms, self.lease_ms if self.renews else float("inf")))

    def kind(self) -> str:
        of_one = "hash" if self.is_hash else "plain"
        return "shared" if self.is_shared else "permits" if self.permits > 1 else of_one

    def holder(self, now_ms: int, readers: int) -> Holder:
        held_s = (now_ms - self.since_ms) / 1000
        return Holder(self.client_name, socket.gethostname(), os.getpid(), held_s, readers if self.is_shared else None)


class Store:
    """What the nodes would keep. Time is that of the machine, and what was let pass."""

    def __init__(self) -> None:
        self.mutex: Any = threading.RLock()
        self.reachable = True
        self.clients: WeakSet[Any] = WeakSet()
        self.waiting: List[Handle] = []
        self._passed_ms = 0
        self._entries: List[Entry] = []
        self._over: List[Entry] = []  # which are to be taken out of these
        self._fences: Dict[bytes, int] = defaultdict(int)

    def now_ms(self) -> int:
        return int(lib.redlock_now_ms()) + self._passed_ms

    def pass_time(self, length_s: float) -> None:
        with self.mutex:
            self._passed_ms += round(length_s * 1000)
        self.scan()
        self.tell()

    def lose(self, name: bytes) -> None:
        with self.mutex:
            for entry in self.held(name):
                self._drop(entry, lib.REDLOCK_LOSS_GONE)
        self.scan()
        self.tell()

    def tell(self) -> None:
        """Whoever has lost something."""
        with self.mutex:
            clients = list(self.clients)
        for client in clients:
            if not client.closed:
                client._tell()

    def held(self, name: bytes) -> List[Entry]:
        with self.mutex:
            while self._over:
                self._drop(self._over.pop(), 0)
            for entry in self._entries[:]:
                if entry.over_ms() <= self.now_ms():
                    self._drop(entry, lib.REDLOCK_LOSS_LIMIT if entry.renews else lib.REDLOCK_LOSS_EXPIRED)
            return [entry for entry in self._entries if name in entry.names]

    def names(self) -> Set[bytes]:
        """Of all locks that are held."""
        return {name for entry in self._entries for name in entry.names}

    def listed(self, name: bytes, resource: bytes) -> List[Listed]:
        """A row for each lock of that name that is held; for readers one."""
        held = sorted(self.held(name), key=lambda entry: (entry.slot, -entry.over_ms()))
        waiters = [handle for handle in self.waiting if name in handle.names]
        first = None
        if waiters:
            first = Waiter(waiters[0].option("client_name"), socket.gethostname(), os.getpid(), 0.0)
        return [self._listed(entry, resource, len(held), len(waiters), first)
                for entry in (held[:1] if held and held[0].is_shared else held)]

    def _listed(self, entry: Entry, resource: bytes, held: int, waiting: int, first: Optional[Waiter]) -> Listed:
        kind = entry.kind()
        left_s = entry.left_ms(self.now_ms()) / 1000
        slot = (entry.slot, entry.permits) if kind == "permits" else (None, None)
        try:
            shown: Any = resource.decode()
        except UnicodeDecodeError:
            shown = resource
        return Listed(shown, kind, "shared" if entry.is_shared else "held", entry.token,
                      entry.holder(self.now_ms(), held), left_s, waiting, first, *slot)

    def _drop(self, entry: Entry, loss: int) -> None:
        entry.loss = loss
        if entry in self._entries:
            self._entries.remove(entry)

    def free(self, entry: Entry) -> None:
        self._over.append(entry)
        if not self.mutex._is_owned():  # else the collector calls this in the midst of other work
            self.scan()

    def leave(self, client: object) -> None:
        """A client is closed: its locks are released."""
        with self.mutex:
            self._entries = [entry for entry in self._entries if entry.client is not client]
        self.scan()

    def scan(self) -> None:
        """Serves those that wait, in the order of their arrival."""
        ended = []
        with self.mutex:
            self.held(b"")
            ahead: Set[bytes] = set()
            for handle in self.waiting[:]:
                handle.attempts += 1
                handle.words = self._another_number(handle)
                if not self.reachable:
                    status = lib.REDLOCK_NO_QUORUM
                elif handle.words:
                    status = lib.REDLOCK_REFUSED_CONFIG
                elif ahead.isdisjoint(handle.names) and self._grant(handle):
                    status = OK
                else:
                    status = lib.REDLOCK_BUSY if handle.until_ms <= self.now_ms() else PENDING
                ahead.update(handle.names)
                if status != PENDING:
                    self.waiting.remove(handle)
                    handle.status = status
                    ended.append(handle)
        for handle in ended:
            handle.wake()

    def _another_number(self, handle: Handle) -> str:
        """Why its number of permits is refused: those that hold the resource have another one."""
        permits = int(handle.option("permits"))
        mixed = {entry.permits for entry in self.held(handle.names[0]) if entry.slot < permits} - {1, permits}
        if permits == 1 or not mixed:
            return ""
        others = f"permits is {permits}; others that use the resource have {mixed.pop()}"
        return f'no quorum: 0 of 1 nodes granted "{handle.shown()}", 1 needed: memory error: {others}'

    def _grant(self, handle: Handle) -> bool:
        entry = Entry(handle, self.now_ms())
        held = [other for name in handle.names for other in self.held(name)]
        wanted, permits = handle.option("slot"), int(handle.option("permits"))
        if any(other.is_shared != entry.is_shared for other in held):
            return False
        if not entry.is_shared:
            taken = {other.slot for other in held}
            slots = range(permits) if not wanted.isdigit() else [int(wanted)]
            free = [slot for slot in slots if slot not in taken]
            if not free:
                return False
            entry.slot = free[0]
        self._entries.append(entry)
        is_plain = not entry.is_shared and permits == len(handle.names) == 1 and handle.option("layout") != "hash"
        if is_plain and handle.option("fence") == "true":
            self._fences[handle.names[0]] += 1
            handle.fence = self._fences[handle.names[0]]
        handle.slot = entry.slot if handle.has_permits and not entry.is_shared else -1
        handle.entry, handle.token = entry, entry.token
        return True

    def limit_s(self) -> float:
        """Until it may be another's turn, or the end of a wait."""
        with self.mutex:
            ends = [entry.over_ms() for entry in self._entries] + [handle.until_ms for handle in self.waiting]
            return max(0.001, min([1.0, *((end - self.now_ms()) / 1000 for end in ends)]))

    def found(self, token: str, names: Tuple[bytes, ...]) -> Optional[Entry]:
        return next((entry for entry in self.held(names[0]) if entry.token == token), None)


class Handle:
    """One holder's handle, with the core's own for its options."""

    def __init__(self, client: Any, native: Any, names: Tuple[bytes, ...], has_permits: bool) -> None:
        self.store: Store = client.store
        self.has_permits = has_permits or int(text(lib.redlock_lock_get, native, b"permits")) > 1
        self.client, self.native, self.names = client._store_key, native, names
        self.entry: Optional[Entry] = None
        self.token, self.fence, self.slot, self.attempts, self.extensions = "", 0, -1, 0, 0
        self.is_adopted = self.has_removed = self.is_cancelled = False
        self.operation = 0
        self.status = lib.REDLOCK_NOT_HELD
        self.until_ms = float("inf")
        self.wake: Callable[[], object] = lambda: None
        self.thread = 0  # that has acquired it, or waits for it
        self.words = ""
        self._generation = generation()

    def option(self, name: str) -> str:
        return text(lib.redlock_lock_get, self.native, name.encode())

    def state(self) -> int:
        if self._generation != generation():
            return int(lib.REDLOCK_STATE_FORKED)
        if self.is_adopted:
            return int(lib.REDLOCK_STATE_ADOPTED)
        entry = self.entry  # which another thread may be about to release
        if entry is None:
            return int(lib.REDLOCK_STATE_FREE)
        self.store.held(b"")
        return int(lib.REDLOCK_STATE_LOST if entry.loss else lib.REDLOCK_STATE_HELD)

    def validity_ms(self) -> int:
        entry = self.entry
        if entry is None or self.state() != lib.REDLOCK_STATE_HELD:
            return 0
        return entry.left_ms(self.store.now_ms())

    def loss(self) -> int:
        entry = self.entry
        return entry.loss if entry is not None else int(lib.REDLOCK_LOSS_NONE)

    def start(self, operation: int, argument: int) -> int:
        operation &= ~lib.REDLOCK_AT_ONCE
        self.operation = operation
        if operation == lib.REDLOCK_ACQUIRE:
            wait_ms = int(self.option("wait_ms")) if argument == -2 else argument
            retries_ms = int(self.option("retry_count")) * int(self.option("retry_delay_ms"))
            waits_ms = [ms for ms in (wait_ms, retries_ms) if ms >= 0]
            self.until_ms = self.store.now_ms() + min(waits_ms, default=float("inf"))
            self.status, self.attempts = PENDING, 0
            with self.store.mutex:
                if self.is_cancelled:  # before it has begun to wait
                    self.status = lib.REDLOCK_CANCELLED
                else:
                    self.store.waiting.append(self)
            self.store.scan()
        elif operation in (lib.REDLOCK_EXTEND, lib.REDLOCK_EXPIRE):
            self.status = self._extend(argument, operation == lib.REDLOCK_EXPIRE)
        elif operation == lib.REDLOCK_RELEASE:
            self.status = self._release()
        elif operation == lib.REDLOCK_REMOVE:
            self.status = self._remove()
        else:
            self.status = OK
        return int(OK)

    def _extend(self, ttl_ms: int, expires: bool) -> int:
        store, ttl_ms = self.store, ttl_ms or int(self.option("ttl_ms"))
        most, is_hash = int(self.option("max_extensions")), self.option("layout") == "hash"
        if not SHORTEST_MS <= ttl_ms <= int(self.option("max_ttl_ms")):
            return self._judged(self.token, ttl_ms)
        if self.option("shared") == "true" and (is_hash or int(self.option("permits")) > 1):
            alone = "a lock whose layout is hash" if is_hash else "one of several permits"
            self.words = f"shared is true; allowed for {alone}: false; release it first"
            return int(lib.REDLOCK_INVALID)
        with store.mutex:
            if not store.reachable:
                return int(lib.REDLOCK_NO_QUORUM)
            if self.is_adopted and not self._is_found():
                return int(lib.REDLOCK_BUSY)
            if self.entry is None or self.state() == lib.REDLOCK_STATE_LOST:
                return int(LOST)
            now_ms, hold_ms = store.now_ms(), int(self.option("max_hold_ms"))
            until_ms = now_ms + ttl_ms
            if not expires and 0 <= most <= self.extensions:
                self.words = f"no further extension: max_extensions is {most}"
                return int(lib.REDLOCK_LIMIT)
            if until_ms > self.entry.limit_ms:
                self.words = (f"no further extension by ttl {ttl_ms / 1000:g} s: max_hold is {hold_ms / 1000:g} s, "
                              f"held for {now_ms - self.entry.since_ms} ms")
                return int(lib.REDLOCK_LIMIT)
            self.extensions += not expires
            self.entry.ends_ms = until_ms if expires else max(self.entry.ends_ms, until_ms)
            self.entry.lease_ms = ttl_ms if expires else max(self.entry.lease_ms, ttl_ms)
            self.entry.renews = self.option("renew") == "true"
            self.entry.is_shared = self.entry.is_shared or self.option("shared") == "true"
        store.scan()
        return int(OK)

    def _judged(self, token: str, ttl_ms: int = 0) -> int:
        """What the core says of a token, or of a ttl that is out of range: it refuses them before it asks a node."""
        if self.slot >= 0:
            lib.redlock_lock_set(self.native, b"slot", b"%d" % self.slot)
        value = token.encode()
        status = int(lib.redlock_lock_adopt_bytes(self.native, value, len(value)))
        if status == OK and ttl_ms:
            status = int(lib.redlock_lock_extend(self.native, ttl_ms))
        if status != OK:
            self.words = text(lib.redlock_lock_message_parts, self.native)
        lib.redlock_lock_detach(self.native)
        return status

    def _is_found(self) -> bool:
        """Whether the adopted token is gone, or held in the form that this handle has."""
        entry = self.store.found(self.token, self.names)
        if entry is None:
            entry = Entry(self, 0)
            entry.loss = lib.REDLOCK_LOSS_GONE
        else:
            form = self._other_form(entry)
            self.words = f"held in another form: {form}" if form else ""
            if form:
                return False
        self.is_adopted, self.entry = False, entry
        return True

    def _other_form(self, entry: Entry) -> str:
        permits, is_hash = int(self.option("permits")), self.option("layout") == "hash"
        if entry.is_shared:
            return "" if self.option("shared") == "true" else "shared; give shared"
        if entry.is_hash and not is_hash:
            return "hash; give layout hash"
        if entry.permits > 1 and permits == 1:
            return f"permit {entry.slot} of {entry.permits}; give permits {entry.permits} and slot {entry.slot}"
        if permits > 1 and entry.permits == 1:
            return "plain; give permits 1"
        if self.operation == lib.REDLOCK_RELEASE:  # which deletes a string whatever it was said to be
            return ""
        if is_hash and not entry.is_hash:
            return "plain; give layout string"
        return "" if set(self.names) <= set(entry.names) else "on fewer resources; give those alone"

    def _release(self) -> int:
        if self.is_adopted and not self._is_found():
            self.is_adopted = False
            return int(lib.REDLOCK_BUSY)
        if self.entry is not None and self.state() == lib.REDLOCK_STATE_LOST:
            return int(LOST)
        with self.store.mutex:
            entry, self.entry = self.entry, None
        if entry is None:
            return int(lib.REDLOCK_NOT_HELD)
        self.store.free(entry)
        return int(OK)

    def _remove(self) -> int:
        store = self.store
        if not store.reachable:
            return int(lib.REDLOCK_NO_QUORUM)
        with store.mutex:
            removed = self.others()
            self.has_removed = bool(removed)
            for entry in removed:
                store._drop(entry, lib.REDLOCK_LOSS_GONE)
        store.scan()
        return int(OK)

    def cancel(self) -> int:
        with self.store.mutex:
            self.is_cancelled = True
            if self in self.store.waiting:
                self.store.waiting.remove(self)
                self.status = lib.REDLOCK_CANCELLED
        self.wake()
        self.store.scan()
        return int(OK)

    def detach(self) -> int:
        if self.state() not in (lib.REDLOCK_STATE_HELD, lib.REDLOCK_STATE_ADOPTED):
            return int(LOST)
        if self.entry is not None:
            if self.entry.renews:
                self.entry.ends_ms = self.store.now_ms() + self.entry.lease_ms
            self.entry.client, self.entry.renews = None, False
        self.entry, self.is_adopted = None, False
        return int(OK)

    def adopt(self, token: str) -> int:
        status = self._judged(token)
        if status == OK:
            self.slot = int(self.option("slot")) if int(self.option("permits")) > 1 else -1
            self.token, self.is_adopted = token, True
        return status

    def shown(self) -> str:
        return ", ".join(name.decode("utf-8", "backslashreplace") for name in self.names)

    def message(self) -> str:
        if self.status == lib.REDLOCK_NO_QUORUM:
            return f"no quorum: {self._denied('unreachable')}"
        permit = "its permit is " if self.option("slot").isdigit() else "no permit is free, one is "
        whose = (permit if int(self.option("permits")) > 1 else "") + f"held by {self.held_by() or 'others'}"
        return self.words or f"{whose}: {self._denied(self.votes()['memory'].words)}"

    def _denied(self, words: str) -> str:
        return f'0 of 1 nodes granted "{self.shown()}", 1 needed: memory {words}'

    def others(self) -> List[Entry]:
        wanted = self.option("slot") if int(self.option("permits")) > 1 else "0"
        held = [entry for name in self.names for entry in self.store.held(name) if entry is not self.entry]
        return [entry for entry in held if not wanted.isdigit() or entry.slot == int(wanted)]

    def waits_for_itself(self) -> bool:
        """Whether nobody but the thread that waits is in its way."""
        return {entry.thread for entry in self.others()} == {self.thread}

    def held_by(self) -> Optional[Holder]:
        others = self.others() if self.operation == lib.REDLOCK_WHO else []
        return others[0].holder(self.store.now_ms(), len(others)) if others else None

    def votes(self) -> Dict[str, Vote]:
        if not self.store.reachable:
            return {"memory": Vote(Status.UNREACHABLE, "unreachable", None, "")}
        if self.has_removed:
            return {"memory": Vote(Status.OK, "deleted", None, "")}
        if self.state() == lib.REDLOCK_STATE_HELD:
            return {"memory": Vote(Status.OK, "granted", self.validity_ms() / 1000, "")}
        if self.entry is not None and self.entry.loss == lib.REDLOCK_LOSS_GONE:
            if self.operation == lib.REDLOCK_RELEASE:
                return {"memory": Vote(Status.NOT_HELD, "nothing to delete", None, "")}
            return {"memory": Vote(Status.LOST, "the token is gone", None, "")}
        others = self.others()
        if self.words.startswith("held in another form"):
            return {"memory": Vote(Status.BUSY, "held in another form", None, "")}
        asks = self.operation == lib.REDLOCK_INSPECT
        if not others:
            return {"memory": Vote(Status.NOT_HELD, "free" if asks else "no key", None, "")}
        if not asks and int(self.option("permits")) > 1:
            return {"memory": Vote(Status.BUSY, "busy", None, "")}
        left_s = max(entry.left_ms(self.store.now_ms()) for entry in others) / 1000
        return {"memory": Vote(Status.BUSY, f"busy ({left_s:.1f} s left)", left_s, others[0].token if asks else "")}

    def __del__(self) -> None:
        if self.entry in self.store._entries and self._generation == generation():  # not at the end of the program
            self.store.free(self.entry)


def said(tell: Callable[[Handle], str]) -> Any:
    """A text as the core gives it."""

    def call(handle: Handle, buffer: Any, size: int) -> int:
        data = tell(handle).encode()
        ffi.memmove(buffer, data[: size - 1] + b"\0", min(len(data), size - 1) + 1)
        return len(data)

    return staticmethod(call)
