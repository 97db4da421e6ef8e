"""What several files of cases share."""
import os
import re

import faces
from common import FOREIGN, occupy  # noqa: F401
from driver import Waiting
from testing import eventually
from testing.resp import url_of
from waiters import places

COMMANDS = {"acquire": "SET", "extend": "EVALSHA", "release": "EVALSHA"}
BEFORE_LAPSE_S = 18  # the last SET of an early win may come after a delete by another connection: then its TTL ends it


def own_ttl_ms(party):
    """What is gone within BEFORE_LAPSE_S was deleted; but a run of the command exits before slow nodes were told: there
    the TTL ends what is left."""
    return 25000 if "state" in party.can else 9000


def other_name(node):
    """Another URL of the same server."""
    if not node.path:
        return node.url_with(host="localhost")
    link = node.path + ".link"
    if not os.path.islink(link):
        os.symlink(node.path, link)
    return url_of(link, *node.login)


def values(nodes, key):
    """What the nodes hold under a key: a majority has something."""
    found = [node.get(key) for node in nodes]
    assert len(found) - found.count(None) >= nodes.quorum, found
    return set(found) - {None}


def acquire_everywhere(lock, nodes, has=lambda node, key, token: node.get(key) == token):
    """Until all nodes have granted: from now on the party is connected to all of them, and no vote is on its way."""
    def granted():
        assert lock.acquire(wait_ms=20000) == "OK"
        return all(has(node, lock.key, lock.token.encode()) for node in nodes) or lock.release() != "OK"

    eventually(granted, 60)


def waited(lock, wait_ms):
    """What an acquisition says whose wait ends. One that no node has answered in time is made again."""
    return eventually(lambda: (reply := lock.acquire(wait_ms=wait_ms)) != "TIMED_OUT" and reply)


def stand_in_line(lock, nodes, number):
    """It waits, and this many with it."""
    waiting = Waiting(lock, -1)
    eventually(lambda: len(places(nodes)) >= number, 30, "%d wait" % number)
    return waiting


def is_php(face):
    return faces.SOURCES[face] == "driver.php"


def error_name(face, status):
    """What a status is called as an exception, by the rule; None where the face has none."""
    name = "".join(word.capitalize() for word in status.split("_"))
    name = {"Invalid": "InvalidOption"}.get(name, name)
    return name + "Exception" if is_php(face) else name if face in ("python", "aio") else None


def option_name(face, option):
    """What an option of the table is called, by the rule."""
    bare = option[:-3] if option.endswith("_ms") else option
    if face in ("python", "aio"):
        return bare
    if face == "cli":
        return "--" + bare.replace("_", "-")
    if is_php(face):
        return re.sub("_(.)", lambda part: part[1].upper(), option)
    return option


def operate(lock, operation=None, arm=None):
    """Acquires, extends and releases, with a fault armed for one of them: the results."""
    results = {}
    for what in COMMANDS:
        if what == operation:
            arm(what)
        results[what] = lock.acquire(wait_ms=20000) if what == "acquire" else getattr(lock, what)()
        if what == "acquire":
            results["others"] = sum(node.get("r") is not None for node in lock.party.cluster.nodes[1:])
    return results


def assert_others_suffice(results):
    """The first node fails and nothing else does. (An early win may have asked for three votes only, this node's too;
    and a command that has just started does not wait for nodes that it is still connecting to.)"""
    assert results["acquire"] == "OK", results
    for what in ("extend", "release"):
        few = results["others"] < 3 or "connect" in results[what].votes
        assert results[what] == "OK" or few and results[what] == "NO_QUORUM", results
