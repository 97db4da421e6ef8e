"""Drivers written in Python, forked by a process that has loaded them: see drivers/nursery.py."""
import atexit
import json
import os
import signal
import socket
import subprocess
import threading

import faces

_OF_A_CASE = {"PYTEST_CURRENT_TEST", "REDLOCK_GUARD"}  # of the environment: nothing that is loaded depends on it
_nurseries = {}
_mutex = threading.Lock()


def _nursery(argv, environment):
    """Where one for this interpreter, driver and environment is asked."""
    key = *argv, *sorted(item for item in environment.items() if item[0] not in _OF_A_CASE)
    with _mutex:
        if key not in _nurseries:
            asks, answers = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with answers:
                process = subprocess.Popen(
                    [argv[0], str(faces.DRIVERS / "nursery.py"), argv[1], str(answers.fileno())], env=environment,
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[answers.fileno()])
            _nurseries[key] = asks, process
        return _nurseries[key][0]


@atexit.register
def _end():
    for asks, process in _nurseries.values():
        asks.close()
        process.communicate()


class Forked:
    """What subprocess.Popen is for a program."""

    def __init__(self, argv, environment):
        self.args, self.returncode = argv, None
        stdin, write = os.pipe()
        read, stdout = os.pipe()
        self.stdin, self.stdout = open(write, "wb"), open(read, "rb")
        self._channel, channel = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        message = json.dumps({"folder": os.getcwd(), "environment": environment}).encode()
        with channel:
            socket.send_fds(_nursery(argv, environment), [message], [stdin, stdout, 2, channel.fileno()])
        os.close(stdin)
        os.close(stdout)
        pid, (self._process,), _, _ = socket.recv_fds(self._channel, 16, 1)
        self.pid = int(pid)

    def __del__(self):
        self._channel.close()
        os.close(self._process)

    def send_signal(self, number):
        """By its descriptor: the number may be another process's by now."""
        try:
            signal.pidfd_send_signal(self._process, number)
        except ProcessLookupError:
            pass

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout=None):
        if self.returncode is None:
            self._channel.settimeout(timeout)
            try:
                self.returncode = os.waitstatus_to_exitcode(int(self._channel.recv(16)))
            except TimeoutError:
                raise subprocess.TimeoutExpired(self.args, timeout) from None
        return self.returncode
