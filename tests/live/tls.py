"""What the tests of rediss:// share: certificates, and servers that look into the handshake or ask for new keys."""
import ctypes
import select
import socket
import ssl
import threading
from contextlib import suppress

import trustme

from testing import Tls


class Authority:
    def __init__(self, folder):
        self.folder, self.ca, self.count = folder, trustme.CA(), 0
        self.ca_file = str(folder / "ca.pem")
        self.ca.cert_pem.write_to_path(self.ca_file)

    def issue(self, *names, **when):
        """A certificate of it, as the kit takes it."""
        made = self.ca.issue_cert(*(names or ("127.0.0.1", "localhost")), **when)
        self.count += 1
        cert, key = (str(self.folder / f"{self.count}.{kind}") for kind in ("cert", "key"))
        made.cert_chain_pems[0].write_to_path(cert)
        made.private_key_pem.write_to_path(key)
        return Tls(self.ca_file, cert, key)


class Recorder:
    """A server that ends each connection after its handshake, and keeps what was said in it."""

    def __init__(self, tls):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(tls.cert_file, tls.key_file)
        self.context.sni_callback = self.named
        self.names, self.reused, self.versions = [], [], []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "rediss://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def named(self, connection, name, context):
        self.names.append(name)

    def serve(self):
        while True:
            try:
                plain, _ = self.listener.accept()
            except OSError:
                return
            try:
                with plain, self.context.wrap_socket(plain, server_side=True) as connection:
                    self.reused.append(connection.session_reused)
                    self.versions.append(connection.version())
            except OSError:
                pass

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Peer:
    """A server whose connections are each given to a function: as they come, or once hands are shaken."""

    def __init__(self, serve, tls=None, version=None):
        self.serve, self.context = serve, None
        if tls:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(tls.cert_file, tls.key_file)
            self.context.maximum_version = version or ssl.TLSVersion.MAXIMUM_SUPPORTED
        self.connections = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "rediss://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with suppress(OSError):
            while True:
                connection = self.listener.accept()[0]
                self.connections += 1
                threading.Thread(target=self.attend, args=(connection,), daemon=True).start()

    def attend(self, connection):
        with suppress(OSError):
            if self.context:
                connection = self.context.wrap_socket(connection, server_side=True)
            self.serve(connection)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Rekeyer:
    """TLS before a server without it, which asks for new keys after every so many replies; Python's ssl cannot ask. It
    does not ask again before the client has answered (RFC 5246, 7.4.1.1): OpenSSL's client loses its way then. It
    serves one connection: the client may try a second when the first is silent."""

    def __init__(self, tls, target, ask, every=1, version=0):
        self.target, self.ask, self.every, self.asked = target, ask, every, 0
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.context = SSL.SSL_CTX_new(SSL.TLS_server_method())
        SSL.SSL_CTX_ctrl(self.context, CLEAR_MODE, AUTO_RETRY, None)
        SSL.SSL_CTX_ctrl(self.context, SET_MAX_VERSION, version, None)
        assert SSL.SSL_CTX_use_certificate_chain_file(self.context, tls.cert_file.encode()) == 1
        assert SSL.SSL_CTX_use_PrivateKey_file(self.context, tls.key_file.encode(), 1) == 1
        self.peer = Peer(self.relay)
        self.url, self.close = self.peer.url, self.peer.close

    def relay(self, client):
        if self.peer.connections > 1:
            threading.Event().wait(60)
            return
        stream, data = SSL.SSL_new(self.context), ctypes.create_string_buffer(65536)
        SSL.SSL_set_fd(stream, client.fileno())
        if SSL.SSL_accept(stream) != 1:
            return
        with client, socket.create_connection(self.target) as server:
            replies = 0
            while True:
                # during a handshake SSL_write takes data that it reads for a fault
                both = [client] if SSL.SSL_in_init(stream) else [client, server]
                ready = [client] if SSL.SSL_pending(stream) else select.select(both, [], [])[0]
                if client in ready:
                    size = SSL.SSL_read(stream, data, len(data))
                    if size <= 0 and SSL.SSL_get_error(stream, size) != WANT_READ:
                        return
                    server.sendall(data.raw[:max(size, 0)])
                if server in ready:
                    reply = server.recv(16384)
                    replies += 1
                    if not reply or SSL.SSL_write(stream, reply, len(reply)) <= 0:
                        return
                    if replies % self.every == 0 and not SSL.SSL_renegotiate_pending(stream):
                        self.ask(stream)
                        self.asked += 1
                        self.goes_on.wait()


def update_keys(stream):
    """Of TLS 1.3; the client has to update its own, too."""
    assert SSL.SSL_key_update(stream, 1) == 1
    SSL.SSL_do_handshake(stream)


def renegotiate(stream):
    """Up to TLS 1.2."""
    assert SSL.SSL_renegotiate(stream) == 1
    SSL.SSL_do_handshake(stream)


CLEAR_MODE, AUTO_RETRY, SET_MAX_VERSION, WANT_READ, TLS_1_2 = 78, 4, 124, 2, 0x303
SSL = ctypes.CDLL("libssl.so.3")
for name, result, arguments in (
        ("TLS_server_method", "p", ""), ("SSL_CTX_new", "p", "p"), ("SSL_CTX_ctrl", "l", "pilp"),
        ("SSL_CTX_use_certificate_chain_file", "i", "ps"), ("SSL_CTX_use_PrivateKey_file", "i", "psi"),
        ("SSL_new", "p", "p"), ("SSL_set_fd", "i", "pi"), ("SSL_accept", "i", "p"), ("SSL_pending", "i", "p"),
        ("SSL_read", "i", "ppi"), ("SSL_write", "i", "psi"), ("SSL_get_error", "i", "pi"),
        ("SSL_key_update", "i", "pi"), ("SSL_renegotiate", "i", "p"),
        ("SSL_renegotiate_pending", "i", "p"),
        ("SSL_in_init", "i", "p"), ("SSL_do_handshake", "i", "p")):
    kinds = {"p": ctypes.c_void_p, "i": ctypes.c_int, "l": ctypes.c_long, "s": ctypes.c_char_p}
    getattr(SSL, name).restype = kinds[result]
    getattr(SSL, name).argtypes = [kinds[kind] for kind in arguments]
