"""rediss:// where it depends on the process's surroundings."""
import re
import ssl

from command import UNAVAILABLE, USAGE
from tls import Recorder

OLD = """openssl_conf = main
[main]
ssl_conf = ssl
[ssl]
system_default = all
[all]
MinProtocol = TLSv1
CipherString = ALL:@SECLEVEL=0
"""


def run(redlock, url, **environment):
    redlock.env.update(environment)
    return redlock("run", "--node", url, "--outage-wait", "1s", "r", "--", "true")


def test_the_authorities_of_the_system_are_the_default(make_cluster, authority, redlock):
    node = make_cluster(1, tls=authority.issue()).nodes[0]
    refused = run(redlock, node.url)
    assert refused.returncode != 0 and "TLS: the server's certificate is refused" in refused.stderr
    assert run(redlock, node.url, SSL_CERT_FILE=authority.ca_file).returncode == 0


def test_certificates_that_are_not_verified_are_warned_of(make_cluster, authority, redlock):
    node = make_cluster(1, tls=authority.issue()).nodes[0]
    done = redlock("run", "--node", node.url, "--no-tls-verify", "r", "--", "true")
    assert (done.returncode, done.stderr) == (
        0, "redlock: warning: --tls-verify is off: any certificate is accepted, so others may read and forge what is "
           "sent\n")


def test_versions_before_1_2_are_refused(authority, redlock, tmp_path):
    """Also where the settings of the system allow them."""
    server = Recorder(authority.issue())
    server.context.set_ciphers("ALL:@SECLEVEL=0")
    server.context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    server.context.maximum_version = ssl.TLSVersion.TLSv1_1
    settings = tmp_path / "openssl.cnf"
    settings.write_text(OLD)
    done = run(redlock, server.url, OPENSSL_CONF=str(settings), SSL_CERT_FILE=authority.ca_file)
    server.close()
    assert done.returncode != 0 and "TLS: " in done.stderr, done.stderr
    assert not server.versions


def test_without_openssl_only_tls_is_refused(redlock, nodes, authority, tmp_path):
    """Only what speaks TLS is refused. The files stand before the system's library, and are none."""
    for name in ("libssl.so.3", "libssl.so.1.1"):
        (tmp_path / name).write_text("")
    refused = run(redlock, "rediss://127.0.0.1:1", LD_LIBRARY_PATH=str(tmp_path))
    assert refused.returncode == USAGE
    assert "OpenSSL was not found (libssl.so.3 or libssl.so.1.1)" in refused.stderr
    nodes.bootstrap(nodes=nodes.nodes[:1])
    assert run(redlock, nodes[0].url, LD_LIBRARY_PATH=str(tmp_path)).returncode == 0


def test_reason_stays_while_a_node_is_tried_again(nodes, redlock):
    """These wait for a handshake that never comes; the last one may have just begun."""
    urls = [node.url.replace("redis://", "rediss://") for node in nodes]
    redlock.env["REDLOCK_NODES"] = ",".join(urls)
    done = redlock("acquire", "--connect-timeout", "500ms", "--wait", "3s", "--outage-wait", "3s", "r")
    assert done.returncode == UNAVAILABLE
    reason = "no answer to the TLS handshake in time"
    assert reason in done.stderr and all(node.name in done.stderr for node in nodes), done.stderr
    assert done.stderr.count("not connected yet") == done.stderr.count("not connected yet; last failure: " + reason)


def test_single_attempt_says_that_a_certificate_is_wanted(make_cluster, authority, redlock):
    servers = make_cluster(3, tls=authority.issue(), config={"tls-auth-clients": "yes"}, bootstrapped=False)
    redlock.env.update(SSL_CERT_FILE=authority.ca_file, REDLOCK_NODES=",".join(servers.urls))
    for _ in range(5):
        done = redlock("acquire", "-n", "r")
        together = re.search(r"(\d) nodes: [^(]*the server wants a certificate", done.stderr)
        assert together and int(together[1]) >= servers.quorum, done.stderr
