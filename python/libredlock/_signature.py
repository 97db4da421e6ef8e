"""Signatures that name the options with their defaults, for help() and editors. They are made when somebody asks, since
programs that only take locks do without the module inspect."""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any, Iterator

from ._election import REFUSED
from ._options import CLIENT_KEYWORDS, LOCK_KEYWORDS, OPTIONS, default_of
from .types import ClientOptions

_OF_LOCKS = ("lock", "rlock", "semaphore", "election", "adopt", "with_lock")


class Signature:
    """Passes for an inspect.Signature."""

    def __init__(self, function: Any) -> None:
        self._function = function

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        inspect = sys.modules.get("inspect")
        return Signature if inspect is None else inspect.Signature

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made(), name)

    def __str__(self) -> str:
        return str(self._made())

    __repr__ = __str__

    def _made(self) -> Any:
        from inspect import signature

        function = self._function
        made_of = function.__globals__, function.__name__, function.__defaults__, function.__closure__
        plain = FunctionType(function.__code__, *made_of)
        plain.__kwdefaults__, plain.__annotations__ = function.__kwdefaults__, function.__annotations__
        written = signature(plain)
        *named, _ = written.parameters.values()
        return written.replace(parameters=[*named, *_options_of(function.__name__)])


def _options_of(name: str) -> Iterator[Any]:
    from inspect import Parameter

    known = LOCK_KEYWORDS if name in _OF_LOCKS else CLIENT_KEYWORDS
    for keyword in OPTIONS:
        if keyword in known and not (name == "election" and keyword in REFUSED):
            hint = ClientOptions.__annotations__[keyword]
            hint = getattr(hint, "__forward_arg__", hint)
            yield Parameter(keyword, Parameter.KEYWORD_ONLY, default=default_of(keyword), annotation=hint)


def name_options(client: Any) -> None:
    client.__new__.__signature__ = Signature(client.__init__)
    for name in ("__init__", *_OF_LOCKS):
        function = vars(client)[name]
        function.__signature__ = Signature(function)
