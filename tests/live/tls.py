"""Certificates, and a server that looks at a handshake only."""
import socket
import ssl
import threading

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
