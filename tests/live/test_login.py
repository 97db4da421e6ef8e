"""password_file and user_file: what is shown to the nodes is read at each connection."""
import pytest

import rl
from helpers import spin
from rl import INVALID, OK

SOON = {"connect_timeout_ms": 2000}


@pytest.fixture
def node(make_cluster):
    return make_cluster(1, password="first", login=(None, None)).nodes[0]


@pytest.fixture
def password_file(tmp_path):
    return tmp_path / "password"


def takes(client):
    lock = client.lock()
    assert lock.acquire(20000) == OK, lock.message
    assert lock.release() == OK


def why(client):
    return spin(client, lambda: client.describe()["nodes"][0]["why"], 20)


@pytest.mark.parametrize("text", ["first", "first\n", "first\r\nsecond\n"])
def test_the_first_line_is_the_password(node, make_client, password_file, text):
    password_file.write_text(text)
    assert "@" not in node.url
    takes(make_client([node.url], password_file=password_file))


def test_a_password_that_was_changed(node, make_client, password_file):
    password_file.write_text("first")
    client = make_client([node.url], password_file=password_file)
    takes(client)
    node.command("CONFIG", "SET", "requirepass", "second")
    password_file.write_text("second")
    node.password = "second"
    node.kill_clients()
    takes(client)


def test_a_user_of_an_acl(make_cluster, make_client, tmp_path):
    node = make_cluster(1, users=["user locker on >sesame ~* +@all"], password="kit", login=(None, None)).nodes[0]
    (tmp_path / "user").write_text("locker\n")
    (tmp_path / "password").write_text("sesame\n")
    client = make_client([node.url], user_file=tmp_path / "user", password_file=tmp_path / "password")
    takes(client)
    assert "locker" in [row["user"] for row in node.clients()]


def test_the_url_s_password_comes_first(node, make_client, password_file):
    password_file.write_text("wrong")
    takes(make_client([node.url_with(password="first")], password_file=password_file))


@pytest.mark.parametrize("text, words", [(None, "no such file or directory"), ("", "it is empty"),
                                         ("\n", "it is empty"), (4096 * "x", "more than 4095 bytes")])
def test_a_file_that_is_of_no_use_is_the_node_s_reason(node, make_client, password_file, text, words):
    if text is not None:
        password_file.write_text(text)
    client = make_client([node.url], settle=False, password_file=password_file, **SOON)
    said = why(client)
    assert said.startswith("password_file: %s: %s" % (words, str(password_file)[:60])), said
    password_file.write_text("first")
    takes(client)


def test_a_user_without_a_password_is_refused(node, tmp_path):
    client = rl.Client([node.url], open=False, user_file=tmp_path / "user")
    assert client.open() == INVALID
    assert client.message == "user_file is set without password_file"
    client.free()


def test_a_secret_is_nowhere_to_be_read(node, make_client, password_file):
    password_file.write_text("first")
    client = make_client([node.url], password_file=password_file)
    takes(client)
    assert "first" not in str(client.describe()) and "first" not in str(client.events())
