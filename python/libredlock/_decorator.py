"""The decorators of with_lock(): a resource from the arguments of a call, and what it does if others hold the lock."""

from __future__ import annotations

import functools
import inspect
import string
import types
from typing import Any, Callable, Dict, Generator, List, NoReturn, Tuple

from ._errors import Busy, InvalidOption
from .types import Named, Resource


class Name:
    """The resource of one function: from a template "report:{user_id}", a function of the same arguments, or fixed."""

    def __init__(self, resource: Named, function: Callable[..., Any]) -> None:
        if not isinstance(resource, (str, bytes)) and not callable(resource):
            raise TypeError(
                f"with_lock({resource!r}): takes a str with names of arguments in braces, bytes as they are,"
                " or a function of the arguments that returns one of the two"
            )
        self._resource = resource
        self._signature = inspect.signature(function)
        self._fields = self._parse(resource) if isinstance(resource, str) else []
        name = _name(function)
        for field, _ in self._fields:
            self._check(field, name)

    def __call__(self, arguments: Tuple[Any, ...], keywords: Any) -> Resource:
        if isinstance(self._resource, bytes):
            return self._resource
        if isinstance(self._resource, str):
            return self._formatted(self._resource, arguments, keywords)
        made = self._resource(*arguments, **keywords)
        if not isinstance(made, (str, bytes)) or not made:
            words = f"it returned {made!r}; allowed: str or bytes, not empty"
            raise InvalidOption(f"with_lock({self._resource!r}): {words}")
        return made

    def _formatted(self, template: str, arguments: Tuple[Any, ...], keywords: Any) -> str:
        bound = self._signature.bind(*arguments, **keywords)
        bound.apply_defaults()
        name = _FORMATTER.vformat(template, (), bound.arguments)
        for _, path in self._fields:
            value, _ = _FORMATTER.get_field(path, (), bound.arguments)
            if value is None or value == "":
                raise InvalidOption(f"with_lock({template!r}): {{{path}}} is {value!r}; allowed: neither None nor ''")
            if hex(id(value)) in name:  # object's own text, which is another one in each process
                words = f"{{{path}}} is a {type(value).__name__} without a text of its own; write {{{path}.id}}, say"
                raise InvalidOption(f"with_lock({template!r}): {words}")
        return name

    @staticmethod
    def _parse(template: str) -> List[Tuple[str, str]]:
        """The fields as (argument, path): ("order", "order.id")."""
        try:
            paths = [path for _, path, _, _ in _FORMATTER.parse(template) if path is not None]
        except ValueError as failure:
            raise ValueError(f"with_lock({template!r}): {failure}") from None
        return [(path.split(".")[0].split("[")[0], path) for path in paths]

    def _check(self, field: str, function: str) -> None:
        parameters = self._signature.parameters
        if field in parameters and parameters[field].kind is not inspect.Parameter.VAR_KEYWORD:
            return
        known = ", ".join(parameters) or "none"
        raise ValueError(
            f"with_lock({self._resource!r}): {function}() has no argument {field!r}; it has: {known}."
            " A function instead of the text can make the resource from anything: with_lock(lambda ...: ...)"
        )


_FORMATTER = string.Formatter()


class OnBusy:
    """What a call does if others hold the lock: it raises Busy, or returns `value`."""

    def __init__(self, on_busy: Any) -> None:
        self.words = f"on_busy={on_busy!r}"
        self.raises = isinstance(on_busy, str) and on_busy == "raise"
        self.skips = isinstance(on_busy, str) and on_busy == "skip"
        self.value = None if self.skips else on_busy

    def check_generator(self, function: Any) -> None:
        if not self.raises and not self.skips:
            raise TypeError(f"with_lock({self.words}): {_name(function)} is a generator; allowed: 'raise' or 'skip'")


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


class Decorator:
    """Goes above a function, with @: the function runs while the lock is held."""

    def __init__(
        self, lock: Callable[[Resource], Any], resource: Named, on_busy: Any, options: Dict[str, Any]
    ) -> None:
        """lock: makes a lock with the options, which do not wait if on_busy says what to do instead of raising."""
        self._lock, self._resource, self._on_busy = lock, resource, OnBusy(on_busy)
        if not self._on_busy.raises:
            options.setdefault("wait", 0)
        lock(b"with_lock")  # refuses wrong options now

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
        name = Name(self._resource, function)

        @functools.wraps(function)
        def generator(*arguments: Any, **keywords: Any) -> Generator[Any, Any, Any]:
            is_in = False
            try:
                with lock(name(arguments, keywords)):
                    is_in = True
                    return (yield from function(*arguments, **keywords))
            except Busy:
                if is_in or on_busy.raises:
                    raise

        @functools.wraps(function)
        def call(*arguments: Any, **keywords: Any) -> Any:
            is_in = False
            try:
                with lock(name(arguments, keywords)):
                    is_in = True
                    return finished(function(*arguments, **keywords), function)
            except Busy:
                if is_in or on_busy.raises:
                    raise
                return on_busy.value

        if not inspect.isgeneratorfunction(function):
            return call
        on_busy.check_generator(function)
        return generator


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
        name = Name(self._resource, function)

        @functools.wraps(function)
        async def generator(*arguments: Any, **keywords: Any) -> Any:
            is_in = False
            try:
                async with lock(name(arguments, keywords)):
                    is_in = True
                    inner = function(*arguments, **keywords)
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
                async with lock(name(arguments, keywords)):
                    is_in = True
                    return finished(await function(*arguments, **keywords), function)
            except Busy:
                if is_in or on_busy.raises:
                    raise
                return on_busy.value

        if not is_generator:
            return call
        on_busy.check_generator(function)
        return generator
