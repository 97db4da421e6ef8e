"""Names of resources with values in braces."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Mapping


class Template:
    """A name with values in braces, as with_lock() takes it: Template("order:{order.id}").format(order=order).

    What would not tell resources apart is refused: None, '' and an object whose text is its address. The rest is that
    of str.format.
    """

    __slots__ = ("text", "fields", "_paths")

    text: str
    """The name as it was given."""
    fields: frozenset[str]
    """The values that it takes: {"order"}."""

    def __init__(self, text: str) -> None:
        """Raises ValueError for braces that do not match, and for a value without a name."""
        if not isinstance(text, str):
            raise TypeError(f"Template({text!r}): takes a str with names in braces")
        parse = _formatter().parse
        try:
            pieces = list(parse(text))
            pieces += [inner for _, _, form, _ in pieces for inner in parse(form or "")]  # as in {number:{width}}
        except ValueError as failure:
            raise ValueError(f"{text!r}: {failure}") from None
        self.text, self._paths = text, [path for _, path, _, _ in pieces if path is not None]
        self.fields = frozenset(path.split(".")[0].split("[")[0] for path in self._paths)
        for field in self.fields:
            if not field.isidentifier():
                raise ValueError(f"{text!r}: {{{field}}} is no name; allowed: as in {{order}} or {{order.id}}")

    def format(self, /, **values: Any) -> str:
        """The name with these values. Raises InvalidOption for one that is refused, KeyError for one that misses."""
        return self._filled(values)

    def _filled(self, values: Mapping[str, Any]) -> str:
        from ._errors import InvalidOption  # which imports what this is for

        formatter = _formatter()
        name = str(formatter.vformat(self.text, (), values))
        for path in self._paths:
            value, _ = formatter.get_field(path, (), values)
            if value is None or value == "":
                raise InvalidOption(f"{self.text!r}: {{{path}}} is {value!r}; allowed: neither None nor ''")
            address = hex(id(value)), f"0x{id(value):016x}"  # as CPython and PyPy write it
            if any(one in name for one in address):  # object's own text, which is another one in each process
                words = f"{{{path}}} is a {type(value).__name__} without a text of its own; write {{{path}.id}}, say"
                raise InvalidOption(f"{self.text!r}: {words}")
        return name

    def __repr__(self) -> str:
        return f"libredlock.Template({self.text!r})"


@lru_cache(None)
def _formatter() -> Any:
    """Made at its first use: programs that only take locks do without the module string."""
    from string import Formatter

    return Formatter()
