"""A resource is bytes, and the key is those bytes."""
import pytest

from steps import BEFORE_LAPSE_S, values

NAMES = {"one": "a", "spaces": " two words ", "quotes": "it's \"$HOME\" `x` \\", "dash": "--help",
         "utf8": "заказ:日本:🔒", "newline": "a\r\nb", "no utf8": b"\xff\xfe\x80", "resp": "*1\r\n$4\r\nPING\r\n",
         "long": "x" * 50000}


@pytest.mark.parametrize("name", NAMES)
def test_the_key_is_the_resource(make, nodes, name):
    resource = NAMES[name]
    lock = make().lock(resource)
    took = lock.acquire()
    assert took == "OK", took
    assert values(nodes, resource) == {took.token.encode()}
    assert make().lock(resource).acquire() == "BUSY"
    assert lock.extend() == "OK"
    assert lock.release() == "OK"
    nodes.no_keys(BEFORE_LAPSE_S)


@pytest.mark.needs("nul")
@pytest.mark.parametrize("resource", [b"\x00", b"a\x00b\x00", b"a\x00b\r\n$5"])
def test_a_resource_may_have_nul_bytes(make, nodes, resource):
    lock = make().lock(resource)
    assert lock.acquire() == "OK"
    assert list(nodes.keys()) == [resource]
    assert make().lock(resource + b"\x00").acquire() == "OK"
    assert lock.extend() == "OK"
    assert lock.release() == "OK"


def test_a_key_prefix_precedes_the_resource(make, nodes):
    took = make(key_prefix="locks:").lock("r").acquire()
    assert took == "OK"
    assert values(nodes, "locks:r") == {took.token.encode()}
    assert make().lock("locks:r").acquire() == "BUSY"
    assert make().lock("r").acquire() == "OK"


@pytest.mark.parametrize("prefix, resource", [("", "libredlock:f:job"), ("lib", "redlock:x")])
def test_names_of_the_librarys_own_keys_are_refused(make, nodes, prefix, resource):
    lock = make(key_prefix=prefix).lock(resource)
    refused = lock.made if lock.made != "OK" else lock.acquire()
    assert refused == "INVALID" and "reserved" in refused.message, refused
    assert not any(node.get(prefix + resource) for node in nodes)
