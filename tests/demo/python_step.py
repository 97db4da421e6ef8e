"""The step of the demo that shows Python: synchronous, asyncio, and a lock taken by the command and kept by Python."""
import re

from steps import BIN, PYTHON, expect, run

SYNCHRONOUS = """
import libredlock
with libredlock.Client(node_timeout=2) as client, libredlock.Client(node_timeout=2) as other:
    with client.lock("orders:42", ttl=10) as lock:
        print(f"held for {lock.remaining:.2f} s, token {lock.token[:8]}...")
        print("another client gets it:", other.lock("orders:42").acquire(blocking=False))
    print("after the block:", client.status("orders:42").verdict)
"""

ASYNCIO = """
import asyncio
from libredlock import aio
async def job(client, number):
    async with client.lock("shared", ttl=10):
        print("task", number, end=" begins, ")
        await asyncio.sleep(0.01)
        print("ends")
async def main():
    async with aio.Client(node_timeout=2) as client:
        await asyncio.gather(*(job(client, number) for number in (1, 2, 3)))
asyncio.run(main())
"""

KEEP = """
import sys, libredlock
with libredlock.Client(node_timeout=2) as client:
    lock = client.adopt("orders:46", sys.argv[1], ttl=20)
    lock.extend()
    print(f"extended: {lock.remaining:.1f} s left")
    lock.release()
    print("released:", client.status("orders:46").verdict)
"""


def step(cluster):
    """Python locks too: a with block, tasks of asyncio, and a lock that the shell took and Python extends"""
    out = _python(cluster, "a with block", SYNCHRONOUS)
    expect("gets it: False" in out and "after the block: free" in out, "the with block")
    out = _python(cluster, "three tasks, one lock", ASYNCIO)
    expect(out.count("begins, ends") == 3, "the tasks come one after the other")
    token = run(cluster, [BIN, "acquire", "--ttl", "12s", "orders:46"], "redlock acquire --ttl 12s orders:46").strip()
    out = _python(cluster, f"extend the lock of token {token[:8]}...", KEEP, token)
    left_s = float(re.search(r"extended: ([0-9.]+) s left", out)[1])
    expect(12 < left_s < 20 and "released: free" in out, "Python extends the lock of the shell")


def _python(cluster, title, source, *arguments):
    return run(cluster, [PYTHON, "-c", source, *arguments], f"python  # {title}")
