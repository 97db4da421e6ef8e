"""What the tests of all parts share: keys of others, refusals, clocks, and patience with a machine that is busy."""

import time

FOREIGN = "f" * 40
# Generous where the time-out is not the subject.
GENEROUS_TIMEOUTS = {"ttl_ms": 8000, "node_timeout_ms": 2000, "connect_timeout_ms": 5000}

# A home-made re-entrant lock: a hash {owner: count}. The arguments are the owner and seconds.
HASH_LOCK = """
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 or redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
  redis.call('EXPIRE', KEYS[1], ARGV[2])
  return nil
end
return redis.call('PTTL', KEYS[1])"""
HASH_UNLOCK = """
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) > 0 then redis.call('EXPIRE', KEYS[1], ARGV[2])
else redis.call('DEL', KEYS[1]) end
return 1"""


def lapsing(ttl_ms):
    """Options for a lease whose lapse is the subject."""
    return {"ttl_ms": ttl_ms, "node_timeout_ms": ttl_ms // 4, "min_validity_ms": 1}


def occupy(nodes, resource="r", ttl_ms=30000, token=FOREIGN):
    """Somebody else's key on these nodes."""
    for node in nodes:
        node.set(resource, token, px=ttl_ms)


def follow(node):
    """It becomes the replica of a master that is nowhere, until lead()."""
    node.command("REPLICAOF", "127.0.0.1", 1)


def lead(node):
    node.command("REPLICAOF", "NO", "ONE")


def evict(node):
    node.config_set("maxmemory-policy", "allkeys-lru")
    node.config_set("maxmemory", "100mb")


def now_ms():
    return time.monotonic() * 1000
