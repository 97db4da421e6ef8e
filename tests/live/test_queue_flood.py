"""A queue that is flooded with places of nobody: more than the model servers of the virtual world keep."""
import itertools

from queueing import LONG, Turns, home, places_be
from rl import OK
from waiters import QUEUE

MANY = 40000
AT_ONCE = 2000


def test_a_flooded_queue_is_cleared_quickly(nodes, held, make_client):
    """A script clears away a thousand places at most, so the waiter asks again at once."""
    turns = Turns(nodes)
    turns.wait("next", make_client(nodes.urls, **LONG).lock())
    places_be(nodes, 1)
    flooded = home(nodes)
    for first in range(0, MANY, AT_ONCE):
        names = ["%016x:1" % number for number in range(first, first + AT_ONCE)]
        flooded.command("ZADD", QUEUE, *itertools.chain(*((number, name) for number, name in enumerate(names))))
    assert held.extend() == OK
    assert held.release() == OK
    assert turns.end(6) == ["next"]
