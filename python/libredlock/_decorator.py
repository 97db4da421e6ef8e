"""The decorators of with_lock(): resources from the arguments of a call, and what it does if others hold the lock."""

from __future__ import annotations

import functools
import inspect
import types
from typing import Any, Callable, Generator, NoReturn, Optional

from ._core import lib
from ._errors import Busy, InvalidOption, Lost, RedlockError
from ._lock import now_ms
from ._native import text
from ._options import milliseconds, refused, seconds, seconds_of
from ._template import Template
from .types import Named, Resources, Seconds


class Names:
    """The resources of one function: from templates "report:{user_id}", fixed, or from a function of its arguments."""

    def __init__(self, resource: Named, function: Callable[..., Any], hold: Optional[str]) -> None:
        self._resource: Any = resource
        self._function, self._hold, self._position = function, hold, -1
        self.signature = inspect.signature(function)
        if hold is not None:
            self._take_out(hold, _name(function))
        parts: Any = resource if isinstance(resource, (list, tuple)) else (resource,)
        self._parts = [Template(part) if isinstance(part, str) else part for part in parts]
        if not callable(resource) and not (parts and all(isinstance(part, (Template, bytes)) for part in self._parts)):
            raise TypeError(
                f"with_lock({resource!r}): takes a str with names of arguments in braces or a Template, bytes as they"
                " are, a list of these, or a function of the arguments that returns the resource"
            )
        for part in self._parts:
            for field in getattr(part, "fields", ()):
                self._check(field, _name(function))

    def __call__(self, arguments: tuple[Any, ...], keywords: Any) -> Resources:
        made: Any = self._resource
        if callable(made):
            made = made(*arguments, **keywords)
            names = made if isinstance(made, (list, tuple)) else (made,)
            if not names or not all(isinstance(name, (str, bytes)) and name for name in names):
                words = f"it returned {made!r}; allowed: str or bytes, not empty, or a list of these"
                raise InvalidOption(f"with_lock({self._resource!r}): {words}")
        else:
            bound = self.signature.bind(*arguments, **keywords)
            bound.apply_defaults()
            values = bound.arguments
            names = [part if isinstance(part, bytes) else part.format(**values) for part in self._parts]
        return tuple(dict.fromkeys(names)) if isinstance(made, (list, tuple)) else names[0]

    def _take_out(self, hold: str, function: str) -> None:
        """The decorator gives it, and not who calls the function."""
        parameters = dict(self.signature.parameters)
        position = [*parameters, hold].index(hold)
        known = parameters.pop(hold, None)
        if known is None or known.kind not in (known.POSITIONAL_OR_KEYWORD, known.KEYWORD_ONLY):
            raise ValueError(f"with_lock(hold={hold!r}): {function}() takes no keyword argument {hold!r}")
        self.signature = self.signature.replace(parameters=list(parameters.values()))
        if known.kind is known.POSITIONAL_OR_KEYWORD:
            self._position = position

    def run(self, hold: Any, arguments: tuple[Any, ...], keywords: Any) -> Any:
        """Calls the function, with the hold in its place."""
        if self._hold is None:
            return self._function(*arguments, **keywords)
        if 0 <= self._position < len(arguments):
            return self._function(*arguments[: self._position], hold, *arguments[self._position :], **keywords)
        return self._function(*arguments, **keywords, **{self._hold: hold})

    def _check(self, field: str, function: str) -> None:
        parameters = self.signature.parameters
        if field in parameters and parameters[field].kind is not inspect.Parameter.VAR_KEYWORD:
            return
        known = ", ".join(parameters) or "none"
        raise ValueError(
            f"with_lock({self._resource!r}): {function}() has no argument {field!r}; it has: {known}."
            " A function instead of the text can make the resource from anything: with_lock(lambda ...: ...)"
        )


class OnBusy:
    """What a call does if others hold the lock: it raises Busy, or returns what `answer` makes of it."""

    def __init__(self, on_busy: Any) -> None:
        self.words = f"on_busy={on_busy!r}"
        self.raises = isinstance(on_busy, str) and on_busy == "raise"
        self.skips = isinstance(on_busy, str) and on_busy == "skip"
        value = None if self.skips else on_busy
        self.answer: Callable[[Busy], Any] = on_busy if callable(on_busy) else lambda busy: value

    def check_generator(self, function: Any) -> None:
        if not self.raises and not self.skips:
            raise TypeError(f"with_lock({self.words}): {_name(function)} is a generator; allowed: 'raise' or 'skip'")

    def check_blocking(self) -> None:
        if _is_async(self.answer):
            raise TypeError(f"with_lock({self.words}): it is async; use libredlock.aio.Client.with_lock")


_LATER = (types.CoroutineType, types.GeneratorType, types.AsyncGeneratorType)


def finished(result: Any, function: Any) -> Any:
    """What a decorated function returned, unless it has work to do that would run without the lock."""
    if not isinstance(result, _LATER) and not hasattr(type(result), "__await__"):
        return result
    close = getattr(result, "close", None)
    if close is not None:
        close()
    raise TypeError(
        f"with_lock: {_name(function)} returned a {type(result).__name__}, which would run without the lock;"
        " decorate a def, a generator or an async def itself"
    )


def _check_callable(function: Any, resource: Named) -> None:
    if not callable(function):
        raise TypeError(f'with_lock(resource) is called first, @client.with_lock("name"); this decorates {function!r}')
    if isinstance(function, type):
        raise TypeError(f"with_lock({resource!r}): decorates functions and methods, and {_name(function)} is a class")
    if isinstance(function, (staticmethod, classmethod)):
        raise TypeError(f"with_lock({resource!r}): goes below @{type(function).__name__}")


def _is_async(function: Any) -> bool:
    """Also for objects with an async __call__."""
    return any(
        inspect.iscoroutinefunction(one) or inspect.isasyncgenfunction(one)
        for one in (function, type(function).__call__)
    )


def _name(function: Any) -> str:
    return getattr(function, "__qualname__", repr(function))


def _option_s(client: Any, name: bytes) -> float:
    return seconds_of(text(lib.redlock_client_get, client._opened(), name))


def _keep_ms(client: Any, keep: Seconds, options: dict[str, Any]) -> int:
    """Refused now if the lock could not be kept for so long."""
    ms, max_hold_s = milliseconds("keep", keep, "above 0 s"), _option_s(client, b"max_hold_ms")
    if "max_hold" in options:
        max_hold_s = float("inf") if options["max_hold"] is None else seconds("max_hold", options["max_hold"], "")
    for name, limit_s in ("max_ttl", _option_s(client, b"max_ttl_ms")), ("max_hold", max_hold_s):
        if not 0 < ms <= limit_s * 1000:
            raise refused("keep", keep, f"allowed: above 0 s, up to {name} ({limit_s:g} s)")
    return ms


# Of a whole lease; they must not prevent what is left of it.
_LIMITS = ((b"node_timeout_ms", b"auto"), (b"min_validity_ms", b"auto"), (b"max_hold_ms", b"-1"))
_WORTH_ASKING_FOR_MS = 1000


class Decorator:
    """Goes above a function, with @: the function runs while the lock is held."""

    def __init__(
        self, client: Any, resource: Named, on_busy: Any, hold: Optional[str], reentrant: bool,
        keep: Optional[Seconds], on_lost: dict[str, Any], options: Any,
    ) -> None:
        """on_lost: that, and what else locks take beside options."""
        self._resource, self._on_busy, self._hold = resource, OnBusy(on_busy), hold
        if not isinstance(reentrant, bool):
            raise TypeError(f"with_lock(reentrant={reentrant!r}): takes True or False")
        if reentrant and isinstance(resource, (list, tuple)):
            raise TypeError(f"with_lock({resource!r}, reentrant=True): takes one resource")

        def lock(name: Resources) -> Any:
            return client._lock_type(client, name, options, "with_lock", *on_lost.values())

        lock(b"" if resource in ("", b"") else b"with_lock")  # refuses wrong options, and no name, now
        self._keep_ms = 0 if keep is None else _keep_ms(client, keep, options)
        if keep is not None:  # who waits for longer than others keep it does the work again
            options.setdefault("wait", min(self._keep_ms / 2000, _option_s(client, b"wait_ms")))
        if not self._on_busy.raises:
            options.setdefault("wait", 0)
        self._lock = (lambda name: client.rlock(name, **on_lost, **options)) if reentrant else lock

    def _left_s(self, hold: Any, since_ms: int) -> float:
        """After a success: for how long it stays; 0 if it is released, or was handed over."""
        left_ms: int = since_ms + self._keep_ms - now_ms()
        if left_ms <= 0 or hold._count > 1 or hold._has_ended:
            return 0
        for option, value in _LIMITS:
            hold._set_of(hold._handle, option, value)
        return max(left_ms, _WORTH_ASKING_FOR_MS) / 1000

    def _is_kept(self, hold: Any, failure: RedlockError) -> bool:
        """Whether it stays held, if for a shorter time."""
        if isinstance(failure, Lost):
            return False
        import logging

        words = "the lock on %r could not be kept for as long as keep= says; it ends in %.1f s: %s"
        logging.getLogger("libredlock").warning(words, hold.resource, hold.remaining, str(failure))
        return True

    def _wrapped(self, made: Any, names: Names) -> Any:
        if self._hold is not None:
            made.__signature__ = names.signature
        return made

    def __bool__(self) -> NoReturn:
        raise self._misused()

    def __enter__(self) -> NoReturn:
        raise self._misused()

    def __exit__(self, *_: Any) -> None: ...

    async def __aenter__(self) -> NoReturn:
        raise self._misused()

    async def __aexit__(self, *_: Any) -> None: ...

    def _misused(self) -> TypeError:
        name = "..." if callable(self._resource) else repr(self._resource)
        return TypeError(
            f"with_lock({name}) takes no lock: it decorates a function, as @client.with_lock({name});"
            f" write {self._block.format(name)} for a block, client.lock({name}).acquire() for a bool"
        )

    _block = "with client.lock({}):"


class BlockingDecorator(Decorator):
    """Of functions, methods and generators."""

    def __call__(self, function: Any = None, *_: Any, **__: Any) -> Any:
        lock, on_busy = self._lock, self._on_busy
        _check_callable(function, self._resource)
        if _is_async(function):
            raise TypeError(
                f"with_lock({self._resource!r}): {_name(function)} is async; use libredlock.aio.Client.with_lock"
            )
        on_busy.check_blocking()
        names, leave, refusal = Names(self._resource, function, self._hold), self._leave, Busy

        @functools.wraps(function)
        def generator(*arguments: Any, **keywords: Any) -> Generator[Any, Any, Any]:
            is_in = False
            try:
                with lock(names(arguments, keywords)) as hold:
                    is_in, since_ms = True, now_ms()
                    result = yield from names.run(hold, arguments, keywords)
                    leave(hold, since_ms)
                    return result
            except refusal:  # Busy; one that is left over at the end of the program may find no globals
                if is_in or on_busy.raises:
                    raise

        @functools.wraps(function)
        def call(*arguments: Any, **keywords: Any) -> Any:
            is_in = False
            try:
                with lock(names(arguments, keywords)) as hold:
                    is_in, since_ms = True, now_ms()
                    result = finished(names.run(hold, arguments, keywords), function)
                    leave(hold, since_ms)
                    return result
            except Busy as busy:
                if is_in or on_busy.raises:
                    raise
                return on_busy.answer(busy)

        if not inspect.isgeneratorfunction(function):
            return self._wrapped(call, names)
        on_busy.check_generator(function)
        return self._wrapped(generator, names)

    def _leave(self, hold: Any, since_ms: int) -> None:
        left_s = self._left_s(hold, since_ms)
        if left_s > 0:
            try:
                hold.expire(left_s)
            except RedlockError as failure:
                if not self._is_kept(hold, failure):
                    raise
            hold.detach()


class AsyncDecorator(Decorator):
    """Of async functions, methods and generators."""

    _block = "async with client.lock({}):"

    def __call__(self, function: Any = None, *_: Any, **__: Any) -> Any:
        lock, on_busy = self._lock, self._on_busy
        _check_callable(function, self._resource)
        is_generator = inspect.isasyncgenfunction(function)
        if not is_generator and not _is_async(function):
            raise TypeError(
                f"with_lock({self._resource!r}): {_name(function)} is not async; use libredlock.Client.with_lock"
            )
        names, leave = Names(self._resource, function, self._hold), self._leave

        @functools.wraps(function)
        async def generator(*arguments: Any, **keywords: Any) -> Any:
            is_in = False
            try:
                async with lock(names(arguments, keywords)) as hold:
                    is_in, since_ms = True, now_ms()
                    inner = names.run(hold, arguments, keywords)
                    try:
                        value = await inner.__anext__()
                        while True:
                            try:
                                sent = yield value
                            except GeneratorExit:
                                raise
                            except BaseException as failure:
                                value = await inner.athrow(failure)
                            else:
                                value = await inner.asend(sent)
                    except StopAsyncIteration:
                        await leave(hold, since_ms)
                        return
                    finally:
                        await inner.aclose()
            except Busy:
                if is_in or on_busy.raises:
                    raise

        @functools.wraps(function)
        async def call(*arguments: Any, **keywords: Any) -> Any:
            is_in = False
            try:
                async with lock(names(arguments, keywords)) as hold:
                    is_in, since_ms = True, now_ms()
                    result = finished(await names.run(hold, arguments, keywords), function)
                    await leave(hold, since_ms)
                    return result
            except Busy as busy:
                if is_in or on_busy.raises:
                    raise
                answer = on_busy.answer(busy)
                return await answer if inspect.isawaitable(answer) else answer

        if not is_generator:
            return self._wrapped(call, names)
        on_busy.check_generator(function)
        return self._wrapped(generator, names)

    async def _leave(self, hold: Any, since_ms: int) -> None:
        left_s = self._left_s(hold, since_ms)
        if left_s > 0:
            try:
                await hold.expire(left_s)
            except RedlockError as failure:
                if not self._is_kept(hold, failure):
                    raise
            hold.detach()
