"""Statuses, the option table, NULL handles and the list of exported names."""
import re

import pytest

import cdef
import rl
from rl import INVALID, OK, Status, ffi, lib

OPTION_FIELDS = ("NAME", "TYPE", "UNIT", "DEFAULT", "RANGE", "SCOPE", "HELP")


def option_table():
    table = []
    while lib.redlock_option_at(len(table), 0) != ffi.NULL:
        index = len(table)
        table.append({field.lower(): ffi.string(lib.redlock_option_at(index, number)).decode()
                      for number, field in enumerate(OPTION_FIELDS)})
    return table


def test_version_is_the_headers():
    assert ffi.string(lib.redlock_version()).decode() == cdef.version()


def test_every_status_has_name_and_text():
    for status in Status:
        assert ffi.string(lib.redlock_status_name(status)).decode() == status.name
        assert ffi.string(lib.redlock_status_text(status))
    for number in (-1, 16, 1000):
        assert ffi.string(lib.redlock_status_name(number)) == b"UNKNOWN"
        assert ffi.string(lib.redlock_status_text(number))


def test_traits():
    def having(trait):
        return {s.name for s in Status if lib.redlock_status_is(s, trait)}

    assert {s.name for s in Status} - having(lib.REDLOCK_IS_ERROR) == {"OK", "PENDING"}
    assert {"BUSY", "NO_QUORUM", "TIMED_OUT"} <= having(lib.REDLOCK_IS_RETRIABLE)
    assert not {"OK", "LOST", "INVALID", "REFUSED_CONFIG"} & having(lib.REDLOCK_IS_RETRIABLE)
    assert {"INVALID", "IN_FLIGHT"} <= having(lib.REDLOCK_IS_USAGE)
    assert lib.redlock_status_is(999, lib.REDLOCK_IS_ERROR) == 0 and lib.redlock_status_is(0, 99) == 0


def test_the_option_table_is_whole():
    table = option_table()
    assert {"nodes", "ttl_ms", "max_ttl_ms", "wait_ms", "retry_count", "retry_delay_ms", "retry_jitter", "drift_factor",
            "node_timeout_ms", "connect_timeout_ms", "min_validity_ms", "renew", "max_extensions", "max_hold_ms",
            "key_prefix", "strict_release", "client_name", "exit_drain_ms"} <= {row["name"] for row in table}
    for row in table:
        assert row["type"] in ("int", "float", "bool", "string", "nodes")
        assert row["unit"] == ("ms" if row["name"].endswith("_ms") else "")
        assert row["scope"] in ("client", "both") and row["range"] and row["help"]
    assert lib.redlock_option_at(-1, 0) == ffi.NULL and lib.redlock_option_at(0, 99) == ffi.NULL


def test_defaults_are_what_get_says(make_client):
    client = rl.Client(open=False)
    for row in option_table():
        value = client.get(row["name"])
        same = float(value) == float(row["default"]) if row["type"] == "float" else value == row["default"]
        assert same, row["name"]
    client.free()


NULL_CALLS = {
    "redlock_client_set": (b"ttl_ms", b"1000"), "redlock_client_open": (), "redlock_client_process": (),
    "redlock_client_drain": (10,), "redlock_lock_set": (b"ttl_ms", b"1000"), "redlock_lock_set_tag": (1,),
    "redlock_lock_acquire": (0,), "redlock_lock_extend": (0,), "redlock_lock_release": (), "redlock_lock_start": (1, 0),
    "redlock_lock_status": (), "redlock_lock_wait": (10,), "redlock_lock_cancel": (),
    "redlock_lock_adopt": (b"a" * 40,), "redlock_lock_detach": (),
}


@pytest.mark.parametrize("name", NULL_CALLS)
def test_null_handle_is_invalid(name):
    assert getattr(lib, name)(ffi.NULL, *NULL_CALLS[name]) == INVALID


def test_null_handles_elsewhere():
    buf = ffi.new("char[]", 10)
    for name, args in {"redlock_client_get": (b"ttl_ms",), "redlock_client_event": (), "redlock_client_describe": (),
                       "redlock_client_message": (), "redlock_client_node_name": (0,), "redlock_lock_get": (b"ttl_ms",),
                       "redlock_lock_token": (), "redlock_lock_answer": (0, 0), "redlock_lock_message": ()}.items():
        assert getattr(lib, name)(ffi.NULL, *args, buf, 10) == -INVALID, name
    assert lib.redlock_client_fd(ffi.NULL) == -INVALID
    assert lib.redlock_lock_vote(ffi.NULL, 0) == -INVALID
    assert lib.redlock_lock_validity_ms(ffi.NULL) == -INVALID
    assert lib.redlock_client_next(ffi.NULL, ffi.new("uint64_t *")) == 0
    assert lib.redlock_client_node_count(ffi.NULL) == 0
    assert lib.redlock_lock_state(ffi.NULL) == rl.State.INVALID
    lib.redlock_client_free(ffi.NULL)
    lib.redlock_lock_free(ffi.NULL)
    lock = lib.redlock_lock_new(ffi.NULL, b"r", 1)
    assert lib.redlock_lock_state(lock) == rl.State.INVALID and lib.redlock_lock_acquire(lock, 0) == INVALID
    lib.redlock_lock_free(lock)


def test_texts_are_cut_and_counted(client):
    buf = ffi.new("char[]", b"xxxxxxxxxx")
    assert lib.redlock_client_get(client.handle, b"ttl_ms", ffi.NULL, 0) == 4
    assert lib.redlock_client_get(client.handle, b"ttl_ms", buf, 3) == 4
    assert ffi.string(buf) == b"80"
    assert client.node_count == 5 and client.node_name(0) in client.get("nodes")
    with pytest.raises(ValueError, match="INVALID"):
        client.node_name(5)


def test_unused_client_can_be_freed():
    for client in (rl.Client(open=False), rl.Client(["redis://127.0.0.1:1"], open=False)):
        client.free()


def test_status_before_the_first_operation(client):
    lock = client.lock()
    assert (lock.status, lock.state, lock.token, lock.validity_ms) == (rl.NOT_HELD, rl.FREE, "", 0)
    assert lock.detach() == lock.start(rl.EXTEND) == lock.start(rl.RELEASE) == rl.NOT_HELD and lock.message
    assert lock.acquire() == OK
    assert re.fullmatch("[0-9a-f]{40}", lock.token)
    assert lock.vote(0) in (OK, rl.PENDING) and lib.redlock_lock_vote(lock.handle, 5) == -INVALID
