"""A store that refuses a late holder, whose lock has gone to somebody else.

    REDLOCK_NODES=redis://10.0.0.1,... python fenced_store.py accounts.db 42 17 [TTL]

sets the balance of account 42 to 17 under a lock of TTL seconds, once it has read a line from standard input. It fails
if somebody with a larger number has written meanwhile.
"""
import sqlite3
import sys

import libredlock


def open_store(path):
    store = sqlite3.connect(path)
    store.execute("CREATE TABLE IF NOT EXISTS account (id INTEGER PRIMARY KEY, balance INTEGER, fence INTEGER)")
    return store


def write(store, account, balance, fence):
    """False if somebody has written with a larger number. Comparing and writing are one statement."""
    with store:
        done = store.execute(
            "INSERT INTO account (id, balance, fence) VALUES (?1, ?2, ?3)"
            " ON CONFLICT (id) DO UPDATE SET balance = ?2, fence = ?3 WHERE fence <= ?3", (account, balance, fence))
    return done.rowcount == 1


def main(path, account, balance, ttl="10"):
    store = open_store(path)
    with libredlock.Client(fence=True, ttl=float(ttl)) as client:
        hold = client.lock("account:" + account).take()
        print("holds it with", hold.fence, flush=True)
        sys.stdin.readline()  # the work; the process may be stopped here for longer than its lease
        if not write(store, int(account), int(balance), hold.fence):
            sys.exit("refused: a later holder has written")
        print("written", flush=True)


if __name__ == "__main__":
    if not 4 <= len(sys.argv) <= 5:
        sys.exit("usage: fenced_store.py FILE ACCOUNT BALANCE [TTL]")
    main(*sys.argv[1:])
