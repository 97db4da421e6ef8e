"""A reply that is too large to be read at once."""
import rl
from helpers import inspected


def test_a_reader_of_a_token_without_end_is_looked_at(nodes, make_client):
    """A reply that is too large would break the connection."""
    for node in nodes:
        node.command("ZADD", "r", 9999999999999, "rl:" + "a" * (2 << 20))
    look = inspected(make_client(nodes.urls))
    assert look.verdict == rl.Verdict.SHARED, look.message
    assert look.holder == "a" * 128
    assert "node_down" not in [event["event"] for event in look.client.events()]
