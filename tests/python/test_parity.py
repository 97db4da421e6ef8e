"""The two surfaces cannot drift apart."""

import asyncio
import inspect

import pytest

import libredlock
from libredlock import aio

AWAITED = {
    "Client": {"bootstrap", "check", "close", "locks", "release", "status"},
    "Lock": {"acquire", "take", "release", "extend", "expire", "downgrade", "status"},
    "Hold": {"release", "extend", "expire", "downgrade"},
}
ONLY_AIO = {"cancel_on_lost"}


def surface(cls):
    return {name: member for name, member in inspect.getmembers(cls) if not name.startswith("_")}


@pytest.mark.parametrize("name", ["Client", "Lock", "Hold"])
def test_names_parameters_and_annotations_are_the_same(name):
    plain, awaited = surface(getattr(libredlock, name)), surface(getattr(aio, name))
    assert set(plain) == set(awaited)
    for member in plain:
        if isinstance(plain[member], property):
            assert isinstance(awaited[member], property)
            continue
        mine, theirs = (inspect.signature(one[member]) for one in (plain, awaited))
        kept = [p for p in theirs.parameters.values() if p.name not in ONLY_AIO]
        assert kept == list(mine.parameters.values()), member
        result = mine.return_annotation
        assert theirs.return_annotation in (result, f"Coroutine[Any, Any, {result}]"), member
        assert asyncio.iscoroutinefunction(awaited[member]) == (member in AWAITED[name]), member
        assert not inspect.iscoroutinefunction(plain[member])


@pytest.mark.parametrize("name", ["Client", "Lock", "Hold"])
def test_each_client_has_its_own_kind_of_context_manager(name):
    assert {"__enter__", "__exit__"} <= set(dir(getattr(libredlock, name)))
    assert {"__aenter__", "__aexit__"} <= set(dir(getattr(aio, name)))
    assert not {"__enter__", "__exit__"} & set(dir(getattr(aio, name)))


def test_everything_public_is_documented():
    for module in (libredlock, aio):
        for name in module.__all__:
            assert inspect.getdoc(getattr(module, name)), name
        for cls in (module.Client, module.Lock, module.Hold):
            for name, member in surface(cls).items():
                assert inspect.getdoc(member), f"{cls.__name__}.{name}"
