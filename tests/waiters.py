"""Who waits for a lock in the queue on the nodes, for the tests of waiting in order, of all parts."""

import re
import threading

from testing import ReplyError

QUEUE, PROMISES = "libredlock:q:r", "libredlock:p:r"
LONGEST_US = 9000000  # a promise that is as long as it may be, and a second less

kit = threading.Lock()  # around the nodes' own connections, for threads that ask


def members(node, key=QUEUE):
    try:
        with kit:
            return node.command("ZRANGE", key, 0, -1)
    except ReplyError:  # somebody else's key
        return []


def subscribers(nodes):
    return [row for node in nodes for row in node.clients() if row.get("sub", "0") != "0"]


def hashed(value, data):
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2 ** 64
    return value


def mixed(value):
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value = (value ^ value >> 33) * factor % 2 ** 64
    return value ^ value >> 33


def in_order(nodes, resource=b"r"):
    """The nodes by the hash of the resource and of their servers: the queue is on the first two that answer."""
    start = hashed(0xCBF29CE484222325, resource)
    return sorted((node for node in nodes if node.alive and not node.stopped), reverse=True,
                  key=lambda node: mixed(hashed(start, node.info("server")["run_id"].encode())))


def waiter_of(place):
    """Its name without the digit of its listener, which may differ from node to node."""
    digits = re.search(rb"\d+$", place)
    return place[:digits.start()] + b"%d" % (int(digits[0]) // 2) if digits else place


def time_of(node):
    """Its clock, in us."""
    seconds, micros = map(int, node.command("TIME"))
    return seconds * 1000000 + micros


def freeze_promises(nodes, resource="r"):
    """Those who wait now keep their places although they are not run: they promise to ask again much later."""
    for node in nodes:
        for place in members(node, "libredlock:p:" + resource):
            with kit:
                node.command("ZADD", "libredlock:p:" + resource, "XX", time_of(node) + LONGEST_US, place)


def places(nodes, key=QUEUE):
    """Who waits, by arrival; who stands on two nodes does so once, and arrived at the earlier of both times."""
    found = {}
    for node in in_order(nodes):
        for place in members(node, key):
            with kit:
                arrival = float(node.command("ZSCORE", key, place) or "inf")
            found[waiter_of(place)] = min(found.get(waiter_of(place), (arrival, place)), (arrival, place))
    return [place for _, place in sorted(found.values())]
