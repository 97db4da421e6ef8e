"""Who waits for a lock in the queue on the nodes, for the tests of waiting in order, of all parts."""

import threading

from testing import ReplyError, eventually

QUEUE, PROMISES = "libredlock:q:r", "libredlock:p:r"

kit = threading.Lock()  # around the nodes' own connections, for threads that ask


def members(node, key=QUEUE):
    try:
        with kit:
            return node.command("ZRANGE", key, 0, -1)
    except ReplyError:  # somebody else's key
        return []


def subscribers(nodes):
    return [row for node in nodes for row in node.clients() if row.get("sub", "0") != "0"]


def time_of(node):
    """Its clock, in us."""
    seconds, micros = map(int, node.command("TIME"))
    return seconds * 1000000 + micros


def promises(nodes):
    """Until when waiters keep their places, if that is not over; each of their questions moves it."""
    found = {}
    with kit:
        for node in nodes:
            row, now_us = node.command("ZRANGE", PROMISES, 0, -1, "WITHSCORES"), time_of(node)
            found.update((place, until) for place, until in zip(row[::2], row[1::2]) if float(until) > now_us)
    return found


def make_waiters_recheck(nodes, run=lambda: None):
    """A waiter that has found the lock free, and asks next when it is free again, takes the hold between for free time,
    and goes ahead of its turn. So all are told to ask now. One does not: the holder has its place until it releases."""
    before = promises(nodes)
    with kit:
        for node in nodes:
            for place in before:
                node.command("PUBLISH", b"libredlock:w:" + place[:16], place + b"?")

    def have_asked():
        run()
        return len(before.items() & promises(nodes).items()) <= 1

    eventually(have_asked, 20, "all have asked")


def freeze_promises(nodes, resource="r"):
    """Those who wait now keep their places although they are not run: they promise to ask again much later."""
    for node in nodes:
        for place in members(node, "libredlock:p:" + resource):
            with kit:
                node.command("ZADD", "libredlock:p:" + resource, "XX", time_of(node) + 600000000, place)


def asked_for_a_queue(nodes):
    return [node.calls("exists") for node in nodes]


def disagree_about_home(nodes, asked_before):
    """Whether somebody stands, or looked for the queue, on another node than the others: theirs has answered it slowly.
    Such clients do not keep each other's order. One that has not connected yet looks on all nodes."""
    asked = [now > before for now, before in zip(asked_for_a_queue(nodes), asked_before)]
    elsewhere = [was_asked for node, was_asked in zip(nodes, asked) if not members(node)]
    return len(elsewhere) < len(nodes) - 1 or any(elsewhere) and not all(elsewhere)
