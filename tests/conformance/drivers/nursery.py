"""Loads what a driver needs, once, and forks a driver whenever it is asked: most of the cost of a short-lived one is
what it imports. What it forks has used nothing of the library yet, and runs the driver's file from its first line."""
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from pathlib import Path


def become(message, descriptors):
    """The process that was asked for, with descriptors, folder and environment of whoever asked."""
    for number, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, number)
    for descriptor in descriptors:
        os.close(descriptor)
    os.chdir(message["folder"])
    os.environ.clear()
    os.environ.update(message["environment"])
    signal.signal(signal.SIGINT, signal.default_int_handler)


def tell_end(process, pid, channel):
    """The end of a driver, to whoever asked for it, if there still is somebody."""
    os.close(process)
    status = os.waitpid(pid, 0)[1]
    try:
        channel.send(b"%d" % status)
    except OSError:
        pass
    channel.close()


def nurse(asks):
    """Returns in each driver that it forks; nobody is there to ask any more: the end."""
    children = {}
    while True:
        for process in set(select.select([asks, *children], [], [])[0]) - {asks}:
            tell_end(process, *children.pop(process))
        if not select.select([asks], [], [], 0)[0]:
            continue
        message, descriptors, _, _ = socket.recv_fds(asks, 1 << 17, 4)
        if not message:
            sys.exit()
        pid = os.fork()
        if pid == 0:
            asks.close()
            for process, (_, channel) in children.items():
                os.close(process)
                channel.close()
            return become(json.loads(message), descriptors)
        for descriptor in descriptors[:3]:
            os.close(descriptor)
        process, channel = os.pidfd_open(pid), socket.socket(fileno=descriptors[3])
        children[process] = pid, channel
        socket.send_fds(channel, [b"%d" % pid], [process])


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    path = Path(sys.argv[1])
    importlib.import_module(path.stem)
    code = compile(path.read_bytes(), path, "exec")
    gc.freeze()
    nurse(socket.socket(fileno=int(sys.argv[2])))
    sys.argv[:] = [str(path)]
    exec(code, {"__name__": "__main__", "__file__": str(path)})
