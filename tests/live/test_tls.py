"""rediss://: trusted authorities, certificates, and the messages on a mismatch."""
import datetime
import shutil
import ssl
import subprocess

import pytest

import rl
from helpers import in_child, lock_once, only_node, spin, why
from rl import INVALID, NO_QUORUM, OK
from testing import eventually
from testing.wait import in_time
from tls import Authority, Recorder

DAY = datetime.timedelta(days=1)
NOW = datetime.datetime.now(datetime.timezone.utc)


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("stranger"))


@pytest.fixture
def node(make_cluster, certificate):
    return make_cluster(1, tls=certificate).nodes[0]


def test_locks_are_on_the_nodes(make_cluster, certificate, open_tls):
    cluster = make_cluster(3, tls=certificate)
    assert all(url.startswith("rediss://") for url in cluster.urls)
    client = open_tls(*cluster.urls, renew="true", max_ttl_ms=60000)
    lock = client.lock()
    assert lock.acquire(20000) == OK, lock.message
    eventually(lambda: [node.get("r") for node in cluster.nodes] == 3 * [lock.token.encode()])
    assert lock.extend(60000) == OK
    eventually(lambda: all(node.pttl("r") > 50000 for node in cluster.nodes))
    assert lock.release() == OK
    eventually(lambda: not cluster.keys())


def test_release_by_another_client_wakes_the_waiter(make_cluster, certificate, open_tls):
    """The listener's connection has TLS, too."""
    cluster = make_cluster(3, tls=certificate)
    held, waiter = open_tls(*cluster.urls, ttl_ms=30000).lock(), open_tls(*cluster.urls)
    assert held.acquire(20000) == OK
    waiting = waiter.lock()
    assert waiting.start(rl.ACQUIRE, 60000) == OK
    spin(waiter, lambda: any(node.command("PUBSUB", "NUMSUB", *node.command("PUBSUB", "CHANNELS"))
                             for node in cluster.nodes))
    assert held.release() == OK
    assert waiting.wait(20000) == OK


def test_more_replies_than_a_read_takes_are_all_read(node, open_tls):
    client = open_tls(node.url, queue="false", ttl_ms=30000)
    lock_once(client)
    locks = [client.lock("%04d%s" % (number, "r" * 200)) for number in range(3000)]
    for lock in locks:
        assert lock.start(rl.ACQUIRE, 20000) == OK
    assert all(lock.wait(20000) == OK for lock in locks)
    assert len(node.keys()) == 3000


def test_a_folder_of_certificates_is_trusted(node, open_tls, authority, tmp_path):
    shutil.copy(authority.ca_file, tmp_path / "ca.pem")
    subprocess.run(["openssl", "rehash", str(tmp_path)], check=True)
    lock_once(open_tls(node.url, tls_ca_file="", tls_ca_path=str(tmp_path)))


def test_the_host_name_is_checked(make_cluster, authority, open_tls):
    node = make_cluster(1, tls=authority.issue("localhost", "127.0.0.1")).nodes[0]
    lock_once(open_tls(node.url_with(host="localhost")))


def test_one_name_may_stand_for_all_nodes(make_cluster, authority, open_tls):
    server = Recorder(authority.issue("locks.example"))
    client = open_tls(server.url, tls_server_name="locks.example")
    spin(client, lambda: server.names, 20)
    assert server.names[0] == "locks.example"
    server.close()


@pytest.mark.parametrize("name, fits", [("*.example.com", True), ("lo*.example.com", False), ("*.com", False)])
def test_wildcards_stand_for_a_whole_label(authority, open_tls, name, fits):
    """As a common name, which counts where there is no other name."""
    server = Recorder(authority.issue("127.0.0.1", common_name=name))
    client = open_tls(server.url, tls_server_name="locks.example.com")
    spin(client, lambda: server.versions or only_node(client)["why"], 20)
    server.close()
    assert only_node(client)["why"].endswith("is not for locks.example.com") != fits


def test_a_client_shows_its_certificate(make_mutual, certificate, authority, open_tls):
    node, = make_mutual(1, certificate)
    shown = authority.issue("worker-7")
    lock_once(open_tls(node.url, tls_cert_file=shown.cert_file, tls_key_file=shown.key_file))


def test_a_server_may_ask_for_a_certificate(make_mutual, certificate, open_tls):
    node, = make_mutual(1, certificate)
    assert why(open_tls(node.url)) == "TLS: the server wants a certificate: set tls_cert_file and tls_key_file"


def test_a_certificate_of_strangers_is_refused_by_the_server(make_mutual, certificate, stranger, open_tls):
    node, = make_mutual(1, certificate)
    shown = stranger.issue("worker-7")
    words = why(open_tls(node.url, tls_cert_file=shown.cert_file, tls_key_file=shown.key_file))
    assert words == "TLS: the server refuses: tlsv1 alert unknown ca"


def test_an_authority_that_is_not_trusted_is_refused(node, stranger, open_tls):
    lock = open_tls(node.url, tls_ca_file=stranger.ca_file, outage_wait_ms=500).lock()
    assert lock.acquire() == NO_QUORUM
    assert "TLS: the server's certificate is refused: " in lock.message
    assert not node.keys()


@pytest.mark.parametrize("names, when, words", [
    (["localhost"], {}, "TLS: the server's certificate is not for 127.0.0.1"),
    ([], {"not_before": NOW - 3 * DAY, "not_after": NOW - DAY},
     "TLS: the server's certificate is refused: certificate has expired"),
    ([], {"not_before": NOW + DAY, "not_after": NOW + 3 * DAY},
     "TLS: the server's certificate is refused: certificate is not yet valid")])
def test_a_certificate_that_does_not_fit_is_refused(authority, open_tls, names, when, words):
    server = Recorder(authority.issue(*names, **when))
    assert why(open_tls(server.url)) == words
    server.close()


def test_a_certificate_of_another_host_is_refused(authority, open_tls):
    server = Recorder(authority.issue("other.example"))
    words = why(open_tls(server.url.replace("127.0.0.1", "localhost")))
    assert words == "TLS: the server's certificate is not for localhost"
    server.close()


def test_a_server_without_tls_is_named_as_one(make_cluster, open_tls):
    node = make_cluster(1).nodes[0]
    words = why(open_tls(node.url.replace("redis://", "rediss://")))
    assert words in ("TLS: the server does not speak it there",
                     "no answer to the TLS handshake in time; it may do without TLS (redis://)")


def test_a_client_without_tls_is_told_of_tls(node, open_tls):
    words = why(open_tls(node.url.replace("rediss://", "redis://")))
    assert words in ("connection reset by peer; it may expect TLS (rediss://)",
                     "the server closed the connection; it may expect TLS (rediss://)")


def test_unverified_certificate_is_accepted_with_a_warning(make_cluster, stranger, open_tls):
    server = Recorder(stranger.issue("other.example"))
    client = open_tls(server.url, tls_verify="off", tls_ca_file="")
    spin(client, lambda: server.versions, 20)
    server.close()
    assert [event["detail"] for event in client.events() if event["event"] == "warning"] == [
        "tls_verify is off: any certificate is accepted, so others may read and forge what is sent"]


def test_a_reconnection_resumes_the_session(authority, open_tls):
    server = Recorder(authority.issue())
    client = open_tls(server.url)
    spin(client, lambda: len(server.reused) > 2, 20)
    assert server.reused[:3] == [False, True, True]
    assert server.versions[0] == "TLSv1.3"
    server.close()


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_a_reconnection_takes_one_round_trip_of_tls(make_cluster, certificate, open_tls, proxy, version):
    """And one for the set-up; that of TCP ends at the proxy. Without the session 1.2 would take two."""
    node = make_cluster(1, tls=certificate, config={"tls-protocols": version}).nodes[0]
    relay = proxy(node)
    client = open_tls(relay.url.replace("redis://", "rediss://"), connect_timeout_ms=60000, node_timeout_ms=20000,
                         ttl_ms=80000, max_ttl_ms=80000)
    lock_once(client)
    relay.delay(up_ms=500, down_ms=500)
    client.events()
    relay.drop()
    happened = []
    spin(client, lambda: happened.extend(client.events()) or {"node_down", "node_up"} <= {
        event["event"] for event in happened}, 60)
    at_ms = {event["event"]: event["at_ms"] for event in happened}
    took_ms = at_ms["node_up"] - at_ms["node_down"]
    assert took_ms >= 2000
    in_time(took_ms < 2900, "it took %d ms" % took_ms)
    assert only_node(client)["tls"] == version


def test_no_other_client_resumes_it(authority, stranger, open_tls, make_client):
    """One may trust others, or show another certificate."""
    server = Recorder(authority.issue())
    first = open_tls(server.url)
    spin(first, lambda: len(server.reused) > 1, 20)
    first.free()
    seen = len(server.reused)
    shown = stranger.issue("worker-7")
    second = open_tls(server.url, tls_cert_file=shown.cert_file, tls_key_file=shown.key_file)
    spin(second, lambda: len(server.reused) > seen, 20)
    assert server.reused[1] and not server.reused[seen]
    third = open_tls(server.url, tls_ca_file=stranger.ca_file)
    assert why(third).startswith("TLS: the server's certificate is refused")
    server.close()


def test_a_forked_child_has_connections_of_its_own(node, open_tls):
    client = open_tls(node.url)
    held = client.lock("parent's")
    assert held.acquire(20000) == OK, held.message

    def child():
        assert held.state == rl.State.FORKED
        lock_once(client)

    in_child(child)
    assert held.extend(9000) == OK and held.release() == OK
    node_of_parent = only_node(client)
    assert (node_of_parent["connects"], node_of_parent["drops"]) == (1, 0)


def test_tls_1_2_is_accepted(authority, open_tls):
    server = Recorder(authority.issue())
    server.context.maximum_version = ssl.TLSVersion.TLSv1_2
    client = open_tls(server.url)
    spin(client, lambda: len(server.reused) > 1, 20)
    assert server.versions[0] == "TLSv1.2" and server.reused[:2] == [False, True]
    server.close()


@pytest.mark.parametrize("options, words", [
    ({"tls_ca_file": "/nowhere/ca.pem"}, 'tls_ca_file is "/nowhere/ca.pem": no such file or directory'),
    ({"tls_ca_file": "{key}"}, 'tls_ca_file is "{key}": '),
    ({"tls_ca_file": "{empty}"}, 'tls_ca_file is "{empty}": the file is empty'),
    ({"tls_ca_path": "{folder}"}, 'tls_ca_path is "{folder}": no certificate there has a name that `openssl rehash`'),
    ({"tls_ca_path": "/nowhere"}, 'tls_ca_path is "/nowhere": no such file or directory'),
    ({"tls_cert_file": "{cert}"}, "tls_cert_file and tls_key_file are set together or not at all"),
    ({"tls_key_file": "{key}"}, "tls_cert_file and tls_key_file are set together or not at all"),
    ({"tls_cert_file": "/nowhere", "tls_key_file": "{key}"}, 'tls_cert_file is "/nowhere": no such file'),
    ({"tls_cert_file": "{key}", "tls_key_file": "{key}"}, 'tls_cert_file is "{key}": PEM lib'),
    ({"tls_cert_file": "{cert}", "tls_key_file": "/nowhere"}, 'tls_key_file is "/nowhere": no such file'),
    ({"tls_cert_file": "{cert}", "tls_key_file": "{other}"}, 'tls_key_file is "{other}": key values mismatch'),
    ({"tls_cert_file": "{cert}", "tls_key_file": "{locked}"},
     'tls_key_file is "{locked}": keys with a passphrase are not supported')])
def test_files_that_are_of_no_use_are_refused(authority, tmp_path, options, words):
    shown = authority.issue("worker-7")
    folder = tmp_path / "empty"
    folder.mkdir()
    (tmp_path / "nothing").write_text("")
    subprocess.run(["openssl", "pkey", "-in", shown.key_file, "-aes256", "-passout", "pass:secret",
                    "-out", tmp_path / "locked"], check=True)
    names = dict(cert=shown.cert_file, key=shown.key_file, folder=folder, empty=tmp_path / "nothing",
                 other=authority.issue("other").key_file, locked=tmp_path / "locked")
    client = rl.Client(["rediss://127.0.0.1:1"], open=False,
                       **{name: value.format(**names) for name, value in options.items()})
    try:
        assert client.open() == INVALID
        assert words.format(**names) in client.message
    finally:
        client.free()


@pytest.fixture
def files(authority, tmp_path):
    """The client's own copies of its files, which are replaced as cert-manager would."""
    return Files(tmp_path, authority.ca_file, authority.issue("worker-7"))


class Files:
    def __init__(self, folder, ca_file, shown):
        self.folder = folder
        self.options = {"tls_%s_file" % name: str(folder / name) for name in ("ca", "cert", "key")}
        self.put(ca=ca_file, cert=shown.cert_file, key=shown.key_file)

    def put(self, **paths):
        for name, path in paths.items():
            shutil.copy(path, self.folder / "new")
            (self.folder / "new").chmod(0o600)
            (self.folder / "new").rename(self.folder / name)


def reconnect(client, nodes):
    """All connections of the client are made anew."""
    before = [node["connects"] for node in client.describe()["nodes"]]
    for node in nodes:
        node.command("CLIENT", "KILL", "TYPE", "normal")
    spin(client, lambda: all(node["connects"] > count for node, count in zip(client.describe()["nodes"], before)))


def warnings(client):
    return [event["detail"] for event in client.events() if event["event"] == "warning"]


def test_a_held_lock_survives_the_rotation_of_all_certificates(make_mutual, certificate, stranger, open_tls, files):
    cluster = make_mutual(3, certificate)
    client = open_tls(*cluster.urls, **files.options)
    lock = client.lock()
    assert lock.acquire(20000) == OK, lock.message
    bundle = files.folder / "bundle"
    bundle.write_bytes(b"".join(open(path, "rb").read() for path in (certificate.ca_file, stranger.ca_file)))
    shown, server = stranger.issue("worker-7"), stranger.issue()
    files.put(ca=bundle)
    for node in cluster.nodes:
        node.command("CONFIG", "SET", "tls-ca-cert-file", str(bundle))
    files.put(cert=shown.cert_file, key=shown.key_file)
    for node in cluster.nodes:
        node.command("CONFIG", "SET", "tls-cert-file", server.cert_file, "tls-key-file", server.key_file,
                     "tls-ca-cert-file", stranger.ca_file)
    reconnect(client, cluster.nodes)
    assert lock.extend(9000) == OK, lock.message
    spin(client, lambda: client.describe()["voting"] == 3)
    assert not warnings(client)
    assert lock.release() == OK


def test_unusable_new_files_leave_the_old_ones_in_use(make_mutual, certificate, authority, open_tls, files):
    node, = make_mutual(1, certificate)
    client = open_tls(node.url, **files.options)
    lock_once(client)
    other = authority.issue("worker-8")
    files.put(cert=other.cert_file)
    for _ in range(2):
        server = authority.issue()  # with it no session is resumed: the client shows its certificate again
        node.command("CONFIG", "SET", "tls-cert-file", server.cert_file, "tls-key-file", server.key_file)
        reconnect(client, [node])
        lock_once(client)
    assert warnings(client) == ['tls_key_file is "%s": key values mismatch' % files.options["tls_key_file"]]
    files.put(key=other.key_file)
    reconnect(client, [node])
    lock_once(client)
    assert not warnings(client)


def test_a_session_is_not_resumed_with_other_files(authority, stranger, open_tls, files):
    server = Recorder(authority.issue())
    client = open_tls(server.url, **files.options)
    spin(client, lambda: len(server.reused) > 2, 20)
    assert server.reused[2]
    files.put(ca=stranger.ca_file)
    assert why(client)
    spin(client, lambda: "certificate is refused" in only_node(client)["why"], 20)
    server.close()


def test_the_end_of_a_certificate_is_shown(make_cluster, authority, open_tls):
    soon = NOW + 20 * DAY
    node = make_cluster(1, tls=authority.issue(not_after=soon)).nodes[0]
    shown = authority.issue("worker-7", not_after=soon - DAY)
    client = open_tls(node.url, tls_cert_file=shown.cert_file, tls_key_file=shown.key_file)
    lock_once(client)
    assert abs(only_node(client)["certificate_expires"] - soon.timestamp()) < 2
    assert abs(client.describe()["certificate_expires"] - (soon - DAY).timestamp()) < 2
    figures = client.metrics()
    assert 'redlock_node_certificate_expiry_timestamp_seconds{node="%s"}' % node.name in figures
    assert "\nredlock_certificate_expiry_timestamp_seconds " in figures
