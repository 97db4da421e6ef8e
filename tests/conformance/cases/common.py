"""What several files of cases share."""
import faces

FOREIGN = "f" * 40
LATE_S = 12  # the last SET of an early win may arrive after a delete by another connection: then its TTL ends it


def occupy(nodes, resource="r", px=30000):
    """Somebody else's keys."""
    for node in nodes:
        node.set(resource, FOREIGN, px=px)


def values(nodes, key):
    """What the nodes hold under a key: a majority has something."""
    found = [node.get(key) for node in nodes]
    assert len(found) - found.count(None) >= nodes.quorum, found
    return set(found) - {None}


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
    return option
