"""Throw-away redis or valkey servers on loopback."""
from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import weakref
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

from .bootstrap import bootstrap_nodes
from .process import Child
from .resp import Address, ReplyError, RespConnection, Tls, url_of
from .wait import eventually

Login = Tuple[Optional[str], Optional[str]]

_START_TRIES = 5
_READY_S = 60.0
_MARKER = "libredlock:m"
_CLIENT = b"libredlock:c:"
_VOLATILE = {b"replicaof", b"slaveof", b"port", b"tls-port", b"unixsocket", b"dir", b"pidfile", b"logfile", b"bind"}


def free_port() -> int:
    """A port of 127.0.0.1 that was free a moment ago."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def _reserve_port() -> socket.socket:
    """A socket that does not listen. Nobody who asks Linux for a free port is given its one, also while the server is
    down; the server gets it, for it sets SO_REUSEADDR too."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", 0))
    return sock


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def _table(info: bytes) -> Dict[str, str]:
    """What INFO says."""
    return dict(line.split(":", 1) for line in info.decode().split("\r\n") if ":" in line)


class Node:
    """One server with a folder of its own."""

    def __init__(self, folder: str, server: str, config: Mapping[str, Any], users: Iterable[str] = (),
                 unix: bool = False, password: Optional[str] = None, cluster_enabled: bool = False,
                 login: Optional[Login] = None, tls: Optional[Tls] = None) -> None:
        self.folder = folder
        self.server = server
        self.config = dict(config)
        self.users = list(users)
        self.password = password
        self.login = login or (None, password)
        self.tls = tls
        self.cluster_enabled = cluster_enabled
        self.host = "127.0.0.1"
        self.port = 0
        self.reservation: Optional[socket.socket] = None
        self.path = os.path.join(folder, "redis.sock") if unix else None
        self.child: Optional[Child] = None
        self.connection: Optional[RespConnection] = None
        self.stopped = False
        self.first_config: Dict[bytes, bytes] = {}
        self.first_reply = b""
        self.first_users: List[bytes] = []
        # Of the bootstrapped server: its pid and history, the key, the text.
        self.marker: Optional[Tuple[int, str, str, bytes]] = None
        os.makedirs(folder, exist_ok=True)

    # -- addresses

    @property
    def address(self) -> Address:
        return self.path if self.path else (self.host, self.port)

    @property
    def name(self) -> str:
        """As the library's messages show it."""
        return "unix:" + self.path if self.path else "%s:%d" % (self.host, self.port)

    @property
    def url(self) -> str:
        return self.url_with()

    def url_with(self, user: Optional[str] = None, password: Optional[str] = None, host: Optional[str] = None,
                 db: Optional[int] = None) -> str:
        """The node's URL, with other credentials, another name of the host, or a database."""
        if user is None and password is None:
            user, password = self.login
        elif password is None:
            password = self.password
        return url_of(self.path or (host or self.host, self.port), user, password, db, self.tls)

    # -- life

    def start(self) -> None:
        """Starts the server and waits until it answers."""
        self.launch()
        self.wait_ready()

    def launch(self) -> None:
        """Starts the server; on the port that it had, or at first on a free one."""
        if self.port == 0:
            self._choose_port()
        with open(os.path.join(self.folder, "redis.log"), "ab") as log:
            self.child = Child([self.server, self._write_config()], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.stopped = False

    def _choose_port(self) -> None:
        self._give_port_back()
        self.reservation = _reserve_port()
        self.port = self.reservation.getsockname()[1]
        if sys.platform != "linux":  # the server could not take it
            self._give_port_back()

    def _give_port_back(self) -> None:
        if self.reservation:
            self.reservation.close()
            self.reservation = None

    def wait_ready(self) -> None:
        """Waits until it answers; at first start a port that others took meanwhile is replaced."""
        first = not self.first_config
        for _ in range(_START_TRIES):
            eventually(lambda: not self.alive or self._answers(), _READY_S, "%s answers" % self.name)
            if self.alive:
                break
            self._forget_connection()
            if first:
                self.port = 0
            self.launch()
        else:
            raise RuntimeError("%s does not start: %s" % (self.server, self.log()[-500:]))
        if first:
            self.first_config = self._config()
            replies, self.first_reply = self._state()
            self.first_users = replies[2]

    def _answers(self) -> bool:
        try:
            # another server on that port would have another pid
            return self.command("PING") == b"PONG" and int(self.info("server")["process_id"]) == self.pid
        except (OSError, ReplyError, KeyError):
            return False

    def _write_config(self) -> str:
        settings = {"bind": "127.0.0.1 -::1", "port": 0 if self.path else self.port, "dir": self.folder, "save": '""',
                    "appendonly": "no", "daemonize": "no", "loglevel": "warning", "repl-diskless-sync-delay": 0}
        if self.path:
            settings["unixsocket"] = self.path
        if self.tls:
            settings.update({"port": 0, "tls-port": self.port, "tls-ca-cert-file": self.tls.ca_file,
                             "tls-cert-file": self.tls.cert_file, "tls-key-file": self.tls.key_file,
                             "tls-auth-clients": "no", "tls-replication": "yes"})
        if self.password is not None:
            settings["requirepass"] = '"%s"' % self.password.replace("\\", "\\\\").replace('"', '\\"')
        if self.cluster_enabled:
            settings.update({"cluster-enabled": "yes", "cluster-port": free_port()})
        settings.update({k.replace("_", "-"): v for k, v in self.config.items()})
        path = os.path.join(self.folder, "redis.conf")
        with open(path, "w") as out:
            out.writelines("%s %s\n" % item for item in settings.items())
            out.writelines("%s\n" % line for line in self.users)
        return path

    def log(self) -> str:
        with open(os.path.join(self.folder, "redis.log"), errors="replace") as text:
            return text.read()

    @property
    def pid(self) -> int:
        assert self.child
        return self.child.pid

    @property
    def alive(self) -> bool:
        return self.child is not None and self.child.alive

    def kill(self) -> None:
        """SIGKILL; the memory is gone."""
        self._forget_connection()
        if self.child:
            self.child.end()
        self.stopped = False

    def stop(self) -> None:
        """SIGSTOP: connections stay, nothing answers from the return on."""
        assert self.child
        self.child.stop()
        self.stopped = True

    def cont(self) -> None:
        assert self.child
        self.child.signal(signal.SIGCONT)
        self.stopped = False

    def restart(self, empty: bool = False) -> None:
        """Ends and starts it on the same address; a running server's data are saved first unless empty."""
        if self.alive and not empty:
            eventually(self._save, what="the data are saved")
        self.kill()
        if empty:
            for entry in ("dump.rdb", "appendonlydir", "appendonly.aof"):
                path = os.path.join(self.folder, entry)
                if os.path.isdir(path):
                    shutil.rmtree(path)
                elif os.path.exists(path):
                    os.unlink(path)
        self.start()

    def _save(self) -> bool:
        try:
            return bool(self.command("SAVE") == b"OK")
        except ReplyError:  # a save in the background is not finished yet
            return False

    def close(self) -> None:
        self.kill()
        self._give_port_back()

    # -- questions

    def command(self, *args: Any) -> Any:
        """The reply to one command on the kit's own connection, which is made anew when the server has closed it."""
        used_before = self.connection is not None
        if self.connection is None:
            self.connection = self.connect()
        try:
            return self.connection.command(*args)
        except OSError as error:
            self._forget_connection()
            if used_before and isinstance(error, ConnectionError):
                return self.command(*args)
            raise

    def connect(self, timeout_s: float = 30.0) -> RespConnection:
        """A new connection with all rights."""
        connection = RespConnection(self.address, timeout_s, self.tls)
        if self.password is not None:
            connection.command("AUTH", self.password)
        return connection

    def _forget_connection(self) -> None:
        if self.connection:
            self.connection.close()
            self.connection = None

    def flush(self) -> None:
        self.command("FLUSHALL")

    def info(self, section: Optional[str] = None) -> Dict[str, str]:
        return _table(self.command("INFO", *([section] if section else [])))

    def config_set(self, name: str, value: Any) -> None:
        self.command("CONFIG", "SET", name, value)

    def get(self, key: Any) -> Optional[bytes]:
        value: Optional[bytes] = self.command("GET", key)
        return value

    def set(self, key: Any, value: Any, px: Optional[int] = None) -> None:
        self.command("SET", key, value, *(["PX", px] if px else []))

    def pttl(self, key: Any) -> int:
        return int(self.command("PTTL", key))

    def keys(self) -> List[bytes]:
        """The keys of database 0; markers and expired ones left out."""
        found = self.command("KEYS", "*")
        return [key for key in found if not key.endswith(_MARKER.encode()) and self.command("EXISTS", key)]

    def clients(self) -> List[Dict[str, str]]:
        """CLIENT LIST without the kit's own connection."""
        own = self.command("CLIENT", "ID")
        rows = self.command("CLIENT", "LIST").decode().splitlines()
        table = [dict(field.partition("=")[::2] for field in row.split(" ")) for row in rows]
        return [row for row in table if int(row["id"]) != own]

    def kill_clients(self) -> int:
        """CLIENT KILL of every other connection; how many there were."""
        return int(self.command("CLIENT", "KILL", "SKIPME", "yes"))

    def calls(self, command: str) -> int:
        """How often a command was executed, from INFO commandstats."""
        entry = self.info("commandstats").get("cmdstat_" + command.lower(), "calls=0,")
        return int(entry.split(",")[0].split("=")[1])

    def replica_of(self, master: Optional["Node"]) -> None:
        """Makes it a replica and waits for the link, or a master again."""
        if master is None:
            self.command("REPLICAOF", "NO", "ONE")
            return
        if master.password is not None:
            self.config_set("masterauth", master.password)
        self.command("REPLICAOF", master.host, master.port)
        eventually(lambda: self.info("replication").get("master_link_status") == "up", 20, "replication link")

    # -- between cases

    def note_marker(self, key: str) -> None:
        """Remembers the marker that is to survive reset()."""
        try:
            text = self.get(key) if self.alive and not self.stopped else None
        except ReplyError:  # a node of a cluster without slots, for example
            text = None
        self.marker = None if text is None else (self.pid, self._history(), key, text)

    @property
    def has_marker(self) -> bool:
        """Whether it is the server that was bootstrapped, was no replica since, and has the marker that it had then."""
        if self.marker is None:
            return False
        pid, history, key, text = self.marker
        return self.pid == pid and self._history() == history and self.get(key) == text

    def _history(self) -> str:
        """It changes when a replica becomes a master."""
        return self.info("replication").get("master_replid2", "")

    def reset(self) -> bool:
        """Alive, configured as at the start, and without keys but for a marker that was noted. What cannot be mended is
        restarted. Whether it has its marker."""
        try:
            if self.stopped:
                self.cont()
            if not self.alive:
                raise ConnectionError("dead")
            return self._mend()
        except (OSError, ReplyError):
            self.restart(empty=True)
            return False

    def _mend(self) -> bool:
        """Whether it has its marker. Seldom is there more to be done than to ask, and to delete keys."""
        try:
            self.command("SCRIPT", "KILL")
        except ReplyError:
            pass
        pid, history, marker, text = self.marker or (0, "", "", b"")
        replies, config = self._state(("GET", marker) if marker else ("PING",))
        _, replication, users, keyspace, keys, _, found = replies
        if _table(replication)["role"] != "master":
            self.replica_of(None)
            return self._mend()
        if config != self.first_reply:
            for name, value in self._config().items():
                if self.first_config.get(name) != value:
                    self.command("CONFIG", "SET", name, self.first_config[name])
        if users != self.first_users:
            known = {line.split()[1] for line in self.first_users}
            for line in users:
                if line.split()[1] not in known:
                    self.command("ACL", "DELUSER", line.split()[1])
            for line in set(self.first_users) - set(users):
                self.command("ACL", "SETUSER", line.split()[1], "reset", *line.split()[2:])
        if _table(keyspace).keys() - {"db0"}:
            self.delete_keys()
        marked = (pid, history, text) == (self.pid, _table(replication).get("master_replid2", ""), found)
        doomed = [key for key in keys if not marked or key != marker.encode()]
        assert self.connection
        self.connection.pipeline([("DEL", *doomed)] * bool(doomed) + [("CONFIG", "RESETSTAT")])
        return marked

    def _config(self) -> Dict[bytes, bytes]:
        flat = self.command("CONFIG", "GET", "*")
        return {name: value for name, value in zip(flat[::2], flat[1::2]) if name not in _VOLATILE}

    def _state(self, question: Tuple[str, ...] = ("PING",)) -> Tuple[List[Any], bytes]:
        """What reset() looks at, in one exchange, and the configuration as bytes. Whoever was paused goes on."""
        assert self.connection
        replies, config = self.connection.pipeline_then([
            ("CLIENT", "UNPAUSE"), ("INFO", "replication"), ("ACL", "LIST"), ("INFO", "keyspace"), ("KEYS", "*"),
            ("SCRIPT", "FLUSH"), question], "CONFIG", "GET", "*")
        for reply in replies:
            if isinstance(reply, ReplyError):
                raise reply
        return replies, config

    def delete_keys(self) -> None:
        """All but the marker: the node goes on to vote, which it would not after flush()."""
        kept = {self.marker[2].encode()} if self.marker and self.has_marker else set()
        databases = [name[2:] for name in self.info("keyspace") if name.startswith("db")]
        for database in databases:
            if database != "0":
                self.command("SELECT", database)
            keys = [key for key in self.command("KEYS", "*") if database != "0" or key not in kept]
            if keys:
                self.command("DEL", *keys)
        if databases not in ([], ["0"]):
            self.command("SELECT", 0)


class Cluster:
    """N independent nodes in a temporary folder: a context manager, ended by pid whatever happens.

    server is a program ($REDLOCK_SERVER, else redis-server), or several with commas between, which the nodes take in
    turn; password is the default user's; users are lines of a server's configuration ("user app on >secret ~* +@all"),
    and login is the user and password in the nodes' URLs where that is not the default user; config holds further
    settings by name. With tls the nodes take connections with TLS only; options has what their clients need.

    The nodes are bootstrapped, for clients that have all n of them, this key_prefix and this max_ttl: locks are
    granted at once. With bootstrapped=False they are as new servers are, which do not vote at first (docs/guard.md);
    that is the default where REDLOCK_GUARD is "off". A node that is restarted or flushed has lost its keys and does not
    vote for a while either; bootstrap() and reset() let it vote at once.
    """

    def __init__(self, n: int = 5, server: Optional[str] = None, unix: bool = False, password: Optional[str] = None,
                 users: Iterable[str] = (), cluster_enabled: bool = False,
                 config: Optional[Mapping[str, Any]] = None, login: Optional[Login] = None,
                 bootstrapped: Optional[bool] = None, tls: Optional[Tls] = None, key_prefix: str = "",
                 max_ttl: Optional[float] = None) -> None:
        self.bootstrapped = os.environ.get("REDLOCK_GUARD") != "off" if bootstrapped is None else bootstrapped
        self.key_prefix = key_prefix
        self.max_ttl = max_ttl
        servers = (server or os.environ.get("REDLOCK_SERVER") or "redis-server").split(",")
        for program in servers:
            if not shutil.which(program):
                raise RuntimeError("server %r is not installed" % program)
        self.folder = tempfile.mkdtemp(prefix="redlock-nodes-")
        self._remove = weakref.finalize(self, _remove, self.folder, os.getpid())
        self.tls = tls
        self.nodes: List[Node] = []
        try:
            for index in range(n):
                node = Node(os.path.join(self.folder, str(index)), servers[index % len(servers)], config or {}, users,
                            unix, password, cluster_enabled, login, tls)
                self.nodes.append(node)
                node.launch()
            for node in self.nodes:
                node.wait_ready()
            if self.bootstrapped:
                self.bootstrap()
        except BaseException:
            self.close()
            raise

    def bootstrap(self, key_prefix: Optional[str] = None, max_ttl: Optional[float] = None,
                  nodes: Optional[Iterable[Node]] = None) -> None:
        """Says that no lock is live on any node, as `redlock bootstrap` does: for clients with this key_prefix and
        max_ttl (default: the cluster's), and if `nodes` are given, for clients of these alone. Nodes that the library
        refuses, replicas for example, stay as they are. reset() takes back what differs from the cluster's own."""
        chosen = self.nodes if nodes is None else list(nodes)
        prefix = self.key_prefix if key_prefix is None else key_prefix
        longest = self.max_ttl if max_ttl is None else max_ttl
        options: Dict[str, Any] = {**self.options, **({"key_prefix": prefix} if prefix else {}),
                                   **({} if longest is None else {"max_ttl": longest})}
        bootstrap_nodes([url_of(node.address, None, node.password, None, self.tls) for node in chosen], **options)
        if chosen == self.nodes and (prefix, longest) == (self.key_prefix, self.max_ttl):
            for node in chosen:
                node.note_marker(prefix + _MARKER)

    @property
    def options(self) -> Dict[str, Any]:
        """What else than the URLs a client needs for these nodes."""
        return {"tls_ca_file": self.tls.ca_file} if self.tls else {}

    @property
    def urls(self) -> List[str]:
        return [node.url for node in self.nodes]

    @property
    def nodes_env(self) -> str:
        """The value of REDLOCK_NODES and of the option "nodes"."""
        return ",".join(self.urls)

    @property
    def quorum(self) -> int:
        return len(self.nodes) // 2 + 1

    def keys(self) -> Dict[bytes, List[int]]:
        """Every key with the numbers of the live nodes that have it; markers and clients' entries are left out."""
        found: Dict[bytes, List[int]] = {}
        for index, node in enumerate(self.nodes):
            for key in node.keys() if node.alive and not node.stopped else ():
                if not key.endswith(_MARKER.encode()) and _CLIENT not in key:
                    found.setdefault(key, []).append(index)
        return found

    def no_keys(self, within_s: float = 5.0) -> None:
        """Waits until no live node has a key of a lock."""
        left: Dict[bytes, List[int]] = {}

        def clean() -> bool:
            left.clear()
            left.update(self.keys())
            return not left

        try:
            eventually(clean, within_s)
        except AssertionError:
            raise AssertionError("keys are left after %g s: %r" % (within_s, left)) from None

    def reset(self) -> None:
        """All nodes are alive, configured as at the start, and without keys. Those that were bootstrapped keep their
        markers, as nodes do between the runs of programs; what has lost its marker is bootstrapped again."""
        marked = [node.reset() for node in self.nodes]
        if self.bootstrapped and not all(marked):
            self.bootstrap()
            for node in self.nodes:
                node.command("CONFIG", "RESETSTAT")

    def close(self) -> None:
        for node in self.nodes:
            node.close()
        self._remove()

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, index: int) -> Node:
        return self.nodes[index]

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
