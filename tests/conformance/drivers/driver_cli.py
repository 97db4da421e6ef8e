"""The command `redlock` as a face of the conformance suite: a message is a run of the command ($REDLOCK_BIN)."""
import json
import os
import signal
import subprocess
import sys
import threading

import lines
from lines import now_ms, send

COMMAND = os.environ.get("REDLOCK_BIN", "redlock")
CAN = "lock acquire start wait extend release detach adopt cancel status body".split()
STATUSES = {0: "OK", 64: "INVALID", 69: "NO_QUORUM", 70: "INTERNAL", 75: "BUSY", 76: "LOST", 78: "REFUSED_CONFIG"}
INSIDE = 'printf "%s\\n" "$REDLOCK_TOKEN"; read -r how; test "$how" != fail || exit 7'  # a body for `redlock run`


def flags(options):
    """Options as flags, by the rule: no _ms, dashes, durations with their unit."""
    for name, text in options.items():
        flag = "--" + lines.keyword(name).replace("_", "-")
        if text in ("true", "false"):
            yield flag if text == "true" else "--no-" + flag[2:]
            continue
        yield flag
        yield "forever" if text == "-1" and name.endswith("_ms") else text + "ms" if name.endswith("_ms") and \
            text.lstrip("-").isdigit() else text


class Lock:
    def __init__(self, client, message):
        self.nodes, options = client
        self.options = dict(options, **lines.options(message))
        resources = lines.resources(message)
        self.resources = [one if isinstance(one, bytes) else one.encode()
                          for one in (resources if isinstance(resources, list) else [resources])]
        self.token = message.get("token", "")
        self.slot = None
        self.process = None

    def run(self, command, options, *arguments):
        """One run to its end, as a reply."""
        t0_ms = now_ms()
        self.process = self.popen(command, ["--json", *flags(options)], arguments, subprocess.PIPE)
        out, err = self.process.communicate()
        return self.reply(t0_ms, self.process.returncode, out, err)

    def popen(self, command, flags, arguments, errors):
        named = [*self.resources, "--"] if command == "run" else ["--", *self.resources]
        argv = [COMMAND, command, *flags, *named, *arguments]
        return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                                env=dict(os.environ, REDLOCK_NODES=self.nodes))

    def reply(self, t0_ms, code, out, err):
        report = json.loads(out) if out.strip() else {}
        status = "CANCELLED" if code == -signal.SIGTERM else report.get("status") or STATUSES.get(code, "INTERNAL")
        self.token, self.slot = report.get("token") or self.token, report.get("slot", self.slot)
        return {"status": status, "exit": code, "t0_ms": t0_ms, "validity_ms": report.get("validity_ms", 0),
                "token": self.token, "message": err.decode(errors="replace").strip() or report.get("message", ""),
                "votes": [node.get("answer", "") for node in report.get("nodes", [])], "verdict": report.get("verdict"),
                "fence": report.get("fence"), "slot": report.get("slot")}

    def operate(self, what, arg):
        options = {name: text for name, text in self.options.items() if name != "renew"}
        if what == "acquire":
            return self.run("acquire", options if arg == -2 else dict(options, wait_ms=str(arg)))
        options = {name: text for name, text in options.items() if name in ONLY[what]}
        if self.slot is not None:
            options["slot"] = str(self.slot)
        if what == "extend" and arg:
            options["ttl_ms"] = str(arg)
        return self.run(what, options, self.token)


CONNECTING = {"key_prefix", "node_timeout_ms", "connect_timeout_ms", "client_name", "exit_drain_ms", "tls_ca_file"}
ONLY = {"extend": CONNECTING | {"guard", "ttl_ms", "max_ttl_ms", "drift_factor", "min_validity_ms", "shared",
                                 "permits", "slot", "layout"},
        "release": CONNECTING | {"shared", "permits", "slot", "layout"}, "status": CONNECTING}


class Driver(lines.Driver):
    def hello(self, message):
        version = subprocess.run([COMMAND, "--version"], capture_output=True, text=True).stdout.split()
        return {"face": "cli", "version": version[-1] if version else "", "pid": os.getpid(), "can": CAN,
                "cancel": "command"}

    def client(self, message):
        options = lines.options(message)
        self.clients[message["client"]] = options.pop("nodes", ""), options
        return {"status": "OK"}

    def lock(self, message):
        self.locks[message["lock"]] = Lock(self.known("client", message), message)
        return {"status": "OK"}

    adopt = lock

    def acquire(self, message):
        return self.known("lock", message).operate("acquire", message.get("wait_ms", -2))

    def extend(self, message):
        return self.known("lock", message).operate("extend", message.get("ttl_ms", 0))

    def release(self, message):
        return self.known("lock", message).operate("release", 0)

    def start(self, message):
        lock, done = self.known("lock", message), {}
        what, arg = lines.one_of(message, "what", "acquire", "extend", "release"), message.get("arg", 0)
        work = threading.Thread(target=lambda: done.update(lock.operate(what, arg)))
        self.started[message["lock"]] = work, done
        lock.process = None
        work.start()
        while work.is_alive() and lock.process is None:
            work.join(0.001)
        return {"status": "OK"}

    def wait(self, message):
        work, done = lines.known("lock", self.started, message)
        limit_ms = message.get("limit_ms", -1)
        work.join(None if limit_ms < 0 else limit_ms / 1000)
        return {"status": "PENDING"} if work.is_alive() else done

    def cancel(self, message):
        self.known("lock", message).process.send_signal(signal.SIGTERM)
        return {"status": "OK"}

    def detach(self, message):
        """`redlock acquire` hands its lock over at once."""
        return {"status": "OK", "token": self.known("lock", message).token}

    def status(self, message):
        nodes, options = self.known("client", message)
        lock = Lock((nodes, options), dict(message, options={}))
        reply = lock.run("status", {name: text for name, text in options.items() if name in ONLY["status"]})
        return dict(reply, status="OK" if reply["exit"] == 0 else reply["status"])

    def body(self, message):
        """`redlock run` around a shell that waits for `leave`."""
        lock, t0_ms = self.known("lock", message), now_ms()
        lock.process = lock.popen("run", flags(lock.options), ["sh", "-c", INSIDE], subprocess.PIPE)
        lock.token = lock.process.stdout.readline().decode().strip()
        if lock.token:
            return {"status": "OK", "t0_ms": t0_ms, "validity_ms": 0, "token": lock.token, "job": lock.process.pid}
        return lock.reply(t0_ms, lock.process.wait(), b"", lock.process.stderr.read())

    def leave(self, message):
        lock = self.known("lock", message)
        _, err = lock.process.communicate(b"fail\n" if message.get("fail") else b"done\n")
        if message.get("fail") and lock.process.returncode == 7:
            return {"status": "OK", "raised": "BodyFailed", "exit": 7}
        return lock.reply(now_ms(), lock.process.returncode, b"", err)

    # -- the machinery

    def reply(self, message):
        send(self.answer(message), message.get("id"))

    def loop(self):
        for number, line in enumerate(sys.stdin, 1):
            message = lines.parse(line, number)
            if message is None:
                continue
            if message.get("do") in ("hello", "client", "lock", "adopt"):
                self.reply(message)
            else:
                threading.Thread(target=self.reply, args=(message,)).start()


if __name__ == "__main__":
    Driver().loop()
