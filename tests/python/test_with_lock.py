"""client.with_lock on functions, methods and generators."""

import functools
import inspect
import threading

import pytest

import libredlock
from libredlock import aio
from libredlock.testing import eventually
from patience import lapsing


def held(client, resource):
    return client.status(resource).verdict == "held"


def test_a_function_runs_while_the_lock_is_held(client):
    @client.with_lock("report:{user_id}", ttl=8)
    def report(user_id, day="today"):
        """Says it."""
        assert held(client, f"report:{user_id}")
        return user_id, day

    assert report(7) == (7, "today")
    assert report(user_id=8, day="x") == (8, "x")
    assert not held(client, "report:7")
    assert report.__name__ == "report" and report.__doc__ == "Says it."
    assert list(inspect.signature(report).parameters) == ["user_id", "day"]


def test_the_resource_has_defaults_attributes_and_formats(client):
    class Order:
        id = 42

    class Service:
        name = "shop"

        @client.with_lock("{self.name}:{order.id:05d}:{kind}")
        def handle(self, order, kind="new"):
            return held(client, "shop:00042:new")

    assert Service().handle(Order())


def test_bytes_and_escaped_braces_are_plain_names(client):
    @client.with_lock(b"{raw}")
    def raw():
        return held(client, b"{raw}")

    @client.with_lock("{{fixed}}")
    def fixed():
        return held(client, "{fixed}")

    assert raw() and fixed()


@pytest.mark.parametrize("template", ["{nobody}", "{}", "{0}", "{user.id}", "{kw}", "{open"])
def test_names_are_checked_at_decoration(client, template):
    def function(user_id, **kw):
        pass

    with pytest.raises(ValueError) as caught:
        client.with_lock(template)(function)
    assert template in str(caught.value)


@pytest.mark.parametrize("value", [None, ""])
def test_an_empty_value_is_refused_at_the_call(client, value):
    calls = []
    function = client.with_lock("r:{key}")(lambda key=value: calls.append(key))
    with pytest.raises(ValueError, match="key"):
        function()
    with pytest.raises(ValueError, match="key"):
        function(value)
    assert calls == []


class Order:
    def __init__(self, id):
        self.id = id


@pytest.mark.parametrize("template", ["ship:{order}", "ship:{order!r}", "ship:{orders[0]}"])
def test_an_object_without_a_text_of_its_own_is_refused(client, template):
    """Its text is another one in each process, so nothing would be excluded."""
    calls = []

    @client.with_lock(template)
    def ship(order, orders):
        calls.append(order)

    with pytest.raises(ValueError, match="Order without a text of its own"):
        ship(Order(42), [Order(42)])
    assert calls == []
    client.with_lock("ship:{order.id}")(lambda order: calls.append(order.id))(Order(42))
    assert calls == [42]


def test_classes_are_not_decorated(client):
    with pytest.raises(TypeError, match="Order is a class"):
        client.with_lock("r")(Order)


def test_options_are_checked_at_decoration(client):
    with pytest.raises(TypeError, match="with_lock.*did you mean ttl="):
        client.with_lock("r", tll=1)
    with pytest.raises(ValueError, match="ttl=0"):
        client.with_lock("r", ttl=0)
    for nameless in "", b"":
        with pytest.raises(ValueError, match="0 bytes"):
            client.with_lock(nameless)
    with pytest.raises(TypeError, match="with_lock"):
        client.with_lock(5)(lambda: None)


def test_each_call_makes_a_lock_of_its_own(client):
    @client.with_lock("depth:{n}", wait=0)
    def down(n):
        return n and down(n - 1)

    assert down(3) == 0

    @client.with_lock("same", wait=0)
    def again(n):
        return n and again(n - 1)

    with pytest.raises(libredlock.Busy):
        again(1)


def test_a_generator_holds_from_its_first_next_to_its_close(client):
    @client.with_lock("r:{n}")
    def numbers(n):
        got = yield n
        yield got
        return "end"

    generator = numbers(1)
    assert not held(client, "r:1")
    assert next(generator) == 1
    assert held(client, "r:1")
    assert generator.send("x") == "x"
    with pytest.raises(StopIteration) as caught:
        next(generator)
    assert caught.value.value == "end"
    assert not held(client, "r:1")
    generator = numbers(1)
    next(generator)
    generator.close()
    assert not held(client, "r:1")


def test_errors_of_the_function_leave_unchanged(client):
    @client.with_lock("r")
    def fail():
        raise KeyError("mine")

    with pytest.raises(KeyError):
        fail()
    assert not held(client, "r")


def test_the_resource_may_be_made_by_a_function_of_the_arguments(client):
    @client.with_lock(lambda order, **more: f"{more['region']}:{order}".encode())
    def handle(order, **more):
        return held(client, f"{more['region']}:{order}")

    assert handle(7, region="eu")
    for made in (None, "", b"", 5):
        with pytest.raises(ValueError, match=f"returned {made!r}"):
            client.with_lock(lambda order, made=made: made)(lambda order: pytest.fail("entered"))(1)


def test_on_busy_skips_returns_something_else_or_raises(client, other):
    calls = []

    def function(n):
        calls.append(n)
        return n

    raises, skips = client.with_lock("r:{n}", wait=0)(function), client.with_lock("r:{n}", on_busy="skip")(function)
    differs = client.with_lock("r:{n}", on_busy={"busy": True})(function)
    assert (raises(1), skips(2), differs(3)) == (1, 2, 3)
    calls.clear()
    with other.lock("r:1"):
        with pytest.raises(libredlock.Busy):
            raises(1)
        assert skips(1) is None  # it does not wait, though the client's wait has no end
        assert differs(1) == {"busy": True}
    assert calls == []


def test_on_busy_waits_on_request(client, other):
    held_by_other = other.lock("r", renew=True).acquire()

    def release():
        eventually(lambda: client.describe()["waiting"], 30)
        held_by_other.release()

    releasing = threading.Thread(target=release)
    releasing.start()
    assert client.with_lock("r", on_busy="skip", wait=30)(lambda: "ran")() == "ran"
    releasing.join()


def test_busy_of_the_function_itself_leaves(client):
    def function():
        raise libredlock.Busy("mine")

    with pytest.raises(libredlock.Busy, match="mine"):
        client.with_lock("r", on_busy="skip")(function)()
    assert not held(client, "r")


def test_a_generator_skips_or_raises_on_busy(client, other):
    def numbers():
        yield 1

    assert list(client.with_lock("r", on_busy="skip")(numbers)()) == [1]
    with other.lock("r"):
        assert list(client.with_lock("r", on_busy="skip")(numbers)()) == []
        with pytest.raises(libredlock.Busy):
            list(client.with_lock("r", wait=0)(numbers)())
    with pytest.raises(TypeError, match="generator; allowed: 'raise' or 'skip'"):
        client.with_lock("r", on_busy=5)(numbers)


def test_async_functions_are_refused(client):
    async def function():
        pass

    async def generator():
        yield

    for one in (function, generator):
        with pytest.raises(TypeError, match="aio"):
            client.with_lock("r")(one)


class AsyncCall:
    async def __call__(self):
        pass


async def coroutine_function():
    pass


def test_what_would_run_later_is_refused(client, run, nodes):
    """At decoration where it can be seen, else at the call; it never runs without the lock."""
    for one in (functools.partial(coroutine_function), AsyncCall()):
        with pytest.raises(TypeError, match="is async; use libredlock.aio"):
            client.with_lock("r")(one)
    ran = []

    def numbers():
        ran.append(1)
        yield 1

    for returns in (lambda: coroutine_function(), lambda: numbers(), functools.partial(lambda: numbers())):
        with pytest.raises(TypeError, match="returned a (coroutine|generator), which would run without the lock"):
            client.with_lock("r")(returns)()
    assert ran == [] and not held(client, "r")

    async def main():
        async with aio.Client(nodes.urls) as aclient:

            async def returns_one():
                return coroutine_function()

            with pytest.raises(TypeError, match="returned a coroutine"):
                await aclient.with_lock("r")(returns_one)()
            assert await aclient.with_lock("r")(AsyncCall())() is None

    run(main())


def test_the_decorator_without_a_resource_is_refused_in_words(client):
    @client.with_lock
    def function(n):
        pass

    with pytest.raises(TypeError, match=r'called first, @client.with_lock\("name"\)'):
        function(1)
    with pytest.raises(TypeError, match=r'called first, @client.with_lock\("name"\)'):
        function()


def test_on_lost_is_called_for_a_decorated_function(client, nodes):
    lost = threading.Event()

    @client.with_lock("r", **lapsing(0.4), renew=False, on_lost=lambda lock: lost.set())
    def function():
        assert lost.wait(60)

    with pytest.raises(libredlock.Lost):
        function()
    with pytest.raises(TypeError, match="on_lost=5"):
        client.with_lock("r", on_lost=5)


@pytest.mark.parametrize("module", [libredlock, aio])
def test_a_decorator_is_no_lock(nodes, run, module):
    """What reads as if it took the lock says what to write instead."""
    block = "async with" if module is aio else "with"
    words = rf"""decorates a function, as @client.with_lock\('r'\); write {block} client.lock\('r'\): for a block"""

    async def use():
        decorator = module.Client(nodes.urls).with_lock("r")
        with pytest.raises(TypeError, match=words):
            assert decorator
        with pytest.raises(TypeError, match=words):
            with decorator:
                pytest.fail("entered")
        with pytest.raises(TypeError, match=words):
            async with decorator:
                pytest.fail("entered")

    run(use())


def transfer(client, calls):
    @client.with_lock(["account:{source}", "account:{target}"])
    def transfer(source, target):
        calls.append([held(client, f"account:{name}") for name in (source, target)])

    return transfer


def test_several_resources_are_held_together(client, other):
    """Each once: whoever is both source and target is one resource."""
    calls = []
    transfer(client, calls)("a", "b")
    transfer(client, calls)("a", "a")
    with other.lock("account:b"):
        with pytest.raises(libredlock.Busy):
            client.with_lock(lambda: ["account:a", b"account:b"], wait=0)(lambda: pytest.fail("entered"))()
        assert client.with_lock(("account:a",))(lambda: held(client, "account:a"))()
    assert calls == [[True, True], [True, True]]
    for wrong in ([], ["a", 5], [["a"]]):
        with pytest.raises(TypeError, match="a list of these"):
            client.with_lock(wrong)(lambda: None)
        with pytest.raises(ValueError, match="a list of these"):
            client.with_lock(lambda wrong=wrong: wrong)(lambda: None)()
    with pytest.raises(ValueError, match="no argument 'nobody'"):
        client.with_lock(["a", "b:{nobody}"])(lambda: None)


def test_a_reentrant_function_may_call_itself(client, other):
    @client.with_lock("tree:{name}", reentrant=True, wait=0, hold="hold")
    def walk(name, depth, hold):
        assert hold.owned() and other.lock(f"tree:{name}").acquire(blocking=False) is False
        return walk(name, depth - 1) if depth else hold.token

    assert walk("a", 3)
    assert not held(client, "tree:a")
    with pytest.raises(TypeError, match="reentrant='yes'.: takes True or False"):
        client.with_lock("r", reentrant="yes")
    with pytest.raises(TypeError, match="reentrant=True.*one resource"):
        client.with_lock(["a", "b"], reentrant=True)


def test_the_hold_is_given_to_the_function(client):
    @client.with_lock("r:{n}", hold="permit", permits=2)
    def job(n, *, permit):
        return type(permit), permit.slot, permit.resource

    assert job(7) in ((libredlock.Hold, slot, "r:7") for slot in (0, 1)) and job(n=8)[2] == "r:8"
    assert list(inspect.signature(job).parameters) == ["n"]

    @client.with_lock("g", hold="hold")
    def numbers(hold):
        yield hold.owned()

    assert list(numbers()) == [True]

    @client.with_lock("p:{n}", hold="hold")
    def placed(hold, n, *more):
        return type(hold), hold.resource, n, more

    assert placed(7, 8) == (libredlock.Hold, "p:7", 7, (8,)) and placed(n=9)[1:] == ("p:9", 9, ())
    with pytest.raises(TypeError, match="permit"):
        job(7, permit=None)


def test_hold_names_a_keyword_argument_of_the_function(client):
    for function in (lambda n: None, lambda *hold: None, lambda **hold: None, lambda hold, /: None):
        with pytest.raises(ValueError, match="hold='hold'.*takes no keyword argument 'hold'"):
            client.with_lock("r", hold="hold")(function)
    with pytest.raises(ValueError, match="no argument 'hold'"):
        client.with_lock("r:{hold.slot}", hold="hold")(lambda hold: None)


def test_on_busy_may_be_a_function_of_the_error(client, other):
    function = client.with_lock("r", on_busy=lambda busy: (busy.resource, busy.status.name))(lambda: "ran")
    assert function() == "ran"
    with other.lock("r"):
        assert function() == ("r", "BUSY")
    with pytest.raises(TypeError, match="generator; allowed: 'raise' or 'skip'"):
        client.with_lock("r", on_busy=print)(lambda: (yield))
    with pytest.raises(TypeError, match="on_busy=.*async; use libredlock.aio"):
        client.with_lock("r", on_busy=coroutine_function)(lambda: None)


def test_async_functions_have_the_same(on_client, client):
    async def later(busy):
        return busy.resource

    async def body(mine):
        @mine.with_lock(["a:{n}", "b:{n}"], on_busy=later, hold="hold")
        async def several(n, hold):
            return hold.resource

        @mine.with_lock("c", on_busy=lambda busy: "at once")
        async def one():
            return "ran"

        @mine.with_lock("t", reentrant=True, wait=0)
        async def walk(depth):
            return await walk(depth - 1) if depth else (await mine.status("t")).held

        @mine.with_lock("g", hold="hold")
        async def numbers(hold):
            yield hold.owned()

        assert await several(1) == ("a:1", "b:1") and await walk(3) and [n async for n in numbers()] == [True]
        with client.lock("b:1"), client.lock("c"):
            assert (await several(1), await one()) == (("a:1", "b:1"), "at once")
        assert await one() == "ran" and not (await mine.status("t")).held

    on_client(body)


def test_a_template_makes_the_same_names_elsewhere(client):
    template = libredlock.Template("ship:{order.id:03d}")
    assert template.format(order=Order(7)) == "ship:007" and template.fields == {"order"}
    assert client.with_lock(template)(lambda order: held(client, template.format(order=order)))(Order(7))
    assert client.with_lock([template, b"x"], hold="hold")(lambda order, hold: hold.resource)(Order(7))[0] == "ship:007"
    assert libredlock.Template("{self}").format(self=1) == "1"
    wide = libredlock.Template("day:{day:0{width}}")
    assert wide.fields == {"day", "width"} and wide.format(day=7, width=2) == "day:07"
    assert repr(template) == f"libredlock.Template({template.text!r})"
    for value in (None, "", Order(7)):
        with pytest.raises(ValueError, match="neither None nor|without a text of its own"):
            libredlock.Template("ship:{order}").format(order=value)
    with pytest.raises(KeyError, match="order"):
        template.format(other=5)
    for wrong in ("{", "{}", "{0}", "{a-b}"):
        with pytest.raises(ValueError, match=f"^'{wrong}'"):
            libredlock.Template(wrong)
    with pytest.raises(TypeError, match="takes a str"):
        libredlock.Template(5)
