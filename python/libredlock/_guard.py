"""The decorators: a resource from a template and the arguments of the call."""

from __future__ import annotations

import functools
import inspect
import string
from typing import Any, Callable, Generator, List, Tuple

from ._errors import InvalidOption, Resource


class Template:
    """"report:{user_id}" for one function."""

    def __init__(self, template: Resource, function: Callable[..., Any]) -> None:
        if not isinstance(template, (str, bytes)):
            raise TypeError(f"guard({template!r}): takes a str with names of arguments in braces, or bytes as they are")
        self._template = template
        self._signature = inspect.signature(function)
        self._fields = self._parse(template) if isinstance(template, str) else []
        name = getattr(function, "__qualname__", repr(function))
        for field, _ in self._fields:
            self._check(field, name)

    def resource(self, arguments: Tuple[Any, ...], keywords: Any) -> Resource:
        if isinstance(self._template, bytes):
            return self._template
        bound = self._signature.bind(*arguments, **keywords)
        bound.apply_defaults()
        for field, path in self._fields:
            value, _ = _FORMATTER.get_field(path, (), bound.arguments)
            if value is None or value == "":
                raise InvalidOption(f"guard({self._template!r}): {{{path}}} is {value!r}; allowed: neither None nor ''")
        return _FORMATTER.vformat(self._template, (), bound.arguments)

    @staticmethod
    def _parse(template: str) -> List[Tuple[str, str]]:
        """The fields as (argument, path): ("order", "order.id")."""
        try:
            paths = [path for _, path, _, _ in _FORMATTER.parse(template) if path is not None]
        except ValueError as failure:
            raise ValueError(f"guard({template!r}): {failure}") from None
        return [(path.split(".")[0].split("[")[0], path) for path in paths]

    def _check(self, field: str, function: str) -> None:
        parameters = self._signature.parameters
        if field in parameters and parameters[field].kind is not inspect.Parameter.VAR_KEYWORD:
            return
        known = ", ".join(parameters) or "none"
        raise ValueError(f"guard({self._template!r}): {function}() has no argument {field!r}; it has: {known}")


_FORMATTER = string.Formatter()


def guard(lock: Callable[[Resource], Any], template: Resource) -> Callable[[Any], Any]:
    """The decorator of the synchronous surface."""

    def decorate(function: Any) -> Any:
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"guard({template!r}): {function.__qualname__} is async; use libredlock.aio.Client.guard")
        named = Template(template, function)

        @functools.wraps(function)
        def generator(*arguments: Any, **keywords: Any) -> Generator[Any, Any, Any]:
            with lock(named.resource(arguments, keywords)):
                return (yield from function(*arguments, **keywords))

        @functools.wraps(function)
        def call(*arguments: Any, **keywords: Any) -> Any:
            with lock(named.resource(arguments, keywords)):
                return function(*arguments, **keywords)

        return generator if inspect.isgeneratorfunction(function) else call

    return decorate


def async_guard(lock: Callable[[Resource], Any], template: Resource) -> Callable[[Any], Any]:
    """The decorator of the asyncio surface."""

    def decorate(function: Any) -> Any:
        is_generator = inspect.isasyncgenfunction(function)
        if not is_generator and not inspect.iscoroutinefunction(function):
            name = getattr(function, "__qualname__", repr(function))
            raise TypeError(f"guard({template!r}): {name} is not async; use libredlock.Client.guard")
        named = Template(template, function)

        @functools.wraps(function)
        async def generator(*arguments: Any, **keywords: Any) -> Any:
            async with lock(named.resource(arguments, keywords)):
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

        @functools.wraps(function)
        async def call(*arguments: Any, **keywords: Any) -> Any:
            async with lock(named.resource(arguments, keywords)):
                return await function(*arguments, **keywords)

        return generator if is_generator else call

    return decorate
