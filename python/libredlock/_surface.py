"""What the methods of locks and clients do, told once for both surfaces: a method without a docstring has that of its
base class. In asyncio those that wait are awaited."""

from __future__ import annotations

from typing import Any, Optional

from .types import Resource, Resources, Seconds


class HoldSurface:
    """The methods of a hold that may wait, and the one that hands it over. Those of a lock mean the newest hold of the
    thread or task that calls them; NotHeld without one."""

    __slots__ = ()

    def release(self) -> Any:
        """Gives the lock up; nodes that do not answer are cleaned up later and are no error.

        Raises NotHeld if it was released already, Lost if its lease had ended or a majority of the nodes no longer had
        it (the deletes are sent all the same), Forked in a child of the process that holds it.
        """

    def extend(self, ttl: Optional[Seconds] = None) -> Any:
        """Prolongs the lock to `ttl` seconds from now (None: the option); returns `remaining`. It never shortens a
        lease.

        Raises Lost if it is gone, for good; NoQuorum if a majority did not confirm (it stays held for `remaining`);
        Limit if max_extensions or max_hold is used up; NotHeld if it was released.
        """

    def expire(self, ttl: Optional[Seconds] = None) -> Any:
        """Sets the lease to `ttl` seconds from now (None: the option), whether that is longer or shorter; it is not
        renewed any more. Returns `remaining`. Otherwise as extend(), but it does not count as an extension."""

    def downgrade(self, ttl: Optional[Seconds] = None) -> Any:
        """Continues as a reader: from the call on others may hold the lock together with this one, as with the option
        shared, and nobody alone until they all have released it. Otherwise as extend(). There is no way back but a
        release.

        Raises what extend() raises: it shares the lock even if too few nodes answered.
        """

    def detach(self) -> Any:
        """Hands the lock over: returns its token for Client.adopt() and forgets it. Local, no I/O."""


class LockSurface(HoldSurface):
    """What a lock has in addition."""

    __slots__ = ()

    def acquire(self, blocking: bool = True, timeout: Seconds = -1) -> Any:
        """Takes the lock: a Hold, which is always true, or False if others hold it at the end of the wait.

        timeout: seconds to wait; -1 means the option `wait`.
        Raises NoQuorum, RefusedConfig or TimedOut if the nodes gave no verdict, Cancelled if the client was closed.
        The lock is not renewed, unless the option renew=True says so: see `remaining` and extend().
        """

    def take(self, blocking: bool = True, timeout: Seconds = -1) -> Any:
        """As acquire(), but raises Busy if others hold the lock at the end of the wait."""

    def status(self) -> Any:
        """Client.status() of what it locks: who holds it, by whichever program."""


class ClientSurface:
    """The methods of a client that make locks or ask the nodes."""

    def lock(self, *arguments: Any, **options: Any) -> Any:
        """A lock on a resource (str as UTF-8, or bytes): a name with options, for any number of threads or tasks.
        Nothing is taken yet; no I/O.

        on_lost: called with the hold at the moment at which it is lost, in a thread of the package, or in
            asyncio by the event loop.
        cancel_on_lost: in asyncio only; cancels the body of `async with` at that moment, and the block ends with Lost.
        """

    def rlock(self, *arguments: Any, **options: Any) -> Any:
        """The re-entrant lock of this client on a resource: the thread, or in asyncio the task, that holds it may take
        it again, and releases it as often. Each call for a resource returns the same object, as long as it is in use;
        other options than those it was made with are an InvalidOption. No I/O.

        on_lost, cancel_on_lost: as for lock().
        """

    def semaphore(self, *arguments: Any, **options: Any) -> Any:
        """One of several permits of a resource, which at most so many hold at a time in all programs, with a lease as
        any lock: client.lock(resource, permits=n). `slot` tells which one is held, from 0. No I/O.

            with client.semaphore("gpu", 4) as permit:
                work(permit.slot)

        One object serves all threads or tasks: it lets in as many as there are permits.
        on_lost, cancel_on_lost: as for lock().
        """

    def election(self, *arguments: Any, **options: Any) -> Any:
        """An election of the one who leads a resource, of any number of candidates in all programs. Each loop over it
        is a candidate and gets its terms; `with term:` is the work of a leader, `term.fence` the number of the term.

            for term in client.election("scheduler"):  # waits until it leads
                with term:
                    lead(term.fence)

        The lease is renewed; ttl is how long the seat is empty after a leader died. Loops end after
        `election.stop()` and when the client is closed.
        on_lost, cancel_on_lost: as for lock(); in asyncio the block of a term is cancelled at its loss, unless it is
            False.
        """

    def adopt(self, *arguments: Any, **options: Any) -> Any:
        """Takes over a lock that was detached elsewhere: a Hold. extend() confirms it, and so does a block; no I/O.

        Another holder may have had it in between.
        """

    def with_lock(self, *arguments: Any, **options: Any) -> Any:
        """Decorates a function, method or generator: it runs while the lock is held and renewed. In asyncio these are
        async.

        resource: a text with names of the arguments in braces, "report:{user_id}", or a function of the same
            arguments that returns the resource; a list of them holds all or none. Names are checked when the function
            is decorated; None or '' as a value is a ValueError at the call.
        on_busy: "raise" raises Busy when others hold the lock at the end of the wait; "skip" does not run the
            function and returns None; a function is called with the Busy, and what it returns is returned, as is
            anything else. Without wait= all but "raise" do not wait.
        hold: the name of the function's keyword argument that gets the Hold.
        reentrant: a thread or task that holds the lock enters again, as with rlock().
        keep: for what runs once in a fleet: after a success the lock stays until so many seconds after it was acquired;
            without wait= a call waits for half of that at most.
        on_lost, cancel_on_lost: as for lock().
        A generator holds the lock from its first item to its close. Raises what `with client.lock(...)` raises.
        """

    def status(self, resource: Resources, *, permits: Optional[int] = None, slot: Optional[int] = None) -> Any:
        """Asks every node who holds the resource, or each of several, without touching it. Raises NoQuorum if too few
        answer.

        permits: asks for each of so many, of a semaphore; the option of the client is the default. slot: for that one.
        """

    def locks(self, pattern: Resource = "*", *, timeout: Optional[Seconds] = None) -> Any:
        """Lists the locks that the nodes have, whoever holds them: holder, remaining time, and who waits. For people:
        it goes through all keys of every node, up to 25,000 a second, and the user needs +scan.

        pattern: as Redis' SCAN has it, of the name behind key_prefix: `client.locks("orders:*")`. Without a `*`, `?` or
            `[` it is one name, which needs no SCAN, and is listed also when it is free.
        timeout: the list ends with what was found by then, and `more` is True; so it is beyond 10,000 locks.
        Raises NoQuorum or RefusedConfig if too few nodes have told all that they have.
        """

    def release(
        self, resource: Resources, *, force: bool = False, permits: Optional[int] = None, slot: Optional[int] = None
    ) -> Any:
        """Deletes a lock whoever holds it, for an operator who knows that the holder is gone: the holder is not
        stopped. Returns on how many nodes it was; 0 if nobody held it. Takes no name that comes from users: one of the
        package's own keys would be deleted, too.

        force: has to be True. permits: of all of so many, of a semaphore, or of the one of slot.
        Raises NoQuorum or RefusedConfig if too few nodes have answered, or are eligible to vote.
        """

    def check(self) -> Any:
        """Asks every node, then describes the client as `redlock doctor --json` does.

        "voting" says how many nodes may vote, and each of "nodes" has "votes", "why" not, and an "advice". Waits for up
        to connect_timeout.
        """

    def bootstrap(self, *, new: bool = False, yes: bool = False, replace: bool = False, dry: bool = False) -> Any:
        """Says that no lock is live, so that nodes that are new or were restarted vote at once, as `redlock bootstrap`.

        new: for deployment scripts; nodes without a marker, if all answer. yes: nodes that are new or quarantined.
        replace: rewrites another max_ttl, list of nodes or cluster, and ends no quarantine. dry: only tells what the
        next call would do; that call then does no more.
        One dict per node: "node", "did" (nothing, registered, replaced, left_alone, no_answer), "votes", "max_ttl_ms"
        and "found", in words. Takes at most twice connect_timeout.
        """

    def close(self) -> Any:
        """Ends the client: whoever waits gets Cancelled, held locks are released; takes at most exit_drain seconds."""
