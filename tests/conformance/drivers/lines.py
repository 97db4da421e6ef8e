"""What the drivers written in Python share: messages in and out, and the words of the suite in those of the package."""
import json
import os
import sys
import threading
import time

_out = threading.Lock()
FLOATS = {"retry_jitter", "drift_factor"}
INTS = {"retry_count", "max_extensions"}


class Malformed(Exception):
    """A message that says too little or what there is not."""


class Fields(dict):
    """A message; a field that is missing says so."""

    line = 0

    def __missing__(self, key):
        raise Malformed('"%s" is missing' % key)


def now_ms():
    return time.monotonic() * 1000


def send(reply, id=None):
    with _out:
        sys.stdout.write(json.dumps(dict(reply, id=id)) + "\n")
        sys.stdout.flush()


def parse(line, number):
    """The message of a line; None when it is none, which is then said."""
    try:
        message = json.loads(line)
        if not isinstance(message, dict):
            raise Malformed("not an object")
        fields = Fields(message)
        fields.line = number
        return fields
    except (ValueError, Malformed) as error:
        send({"line": number, "malformed": str(error)})
        return None


def resource(message):
    value = message["resource"]
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) else value


def keyword(name):
    """Names of options by the rule: _ms is dropped, since values are seconds."""
    return name[:-3] if name.endswith("_ms") else name


def value(name, text):
    """What is no value of the option's type goes through as text, for the package to refuse."""
    try:
        if name.endswith("_ms") and text != "auto":
            return None if int(text) == -1 else int(text) / 1000
        if name in INTS:
            return None if int(text) == -1 else int(text)
        if name in FLOATS:
            return float(text)
    except ValueError:
        return text
    return {"true": True, "false": False}.get(text, text)


def keywords(options):
    return {keyword(name): value(name, text) for name, text in options.items()}


def failure(error):
    """An exception as a reply."""
    status = getattr(error, "status", None)
    return {"status": status.name if status is not None else "INVALID", "message": str(error),
            "error": type(error).__name__}


def facts(lock, t0_ms):
    """What an operation that was done left."""
    words = [vote.words for vote in lock.votes.values()]
    return {"t0_ms": t0_ms, "validity_ms": round(lock.remaining * 1000), "token": lock.token or "", "votes": words,
            "message": ", ".join("%s %s" % pair for pair in zip(lock.votes, words))}


def state(lock):
    word = "HELD" if lock.owned() else "LOST" if lock.lost else "FREE"
    return {"status": "OK", "state": word, "token": lock.token or ""}


def validity(lock):
    t0_ms = now_ms()
    return {"status": "OK", "t0_ms": t0_ms, "validity_ms": round(lock.remaining * 1000)}


def verdict(report):
    words = {"held": "held", "free": "free"}
    return {"status": "OK", "verdict": words.get(report.verdict, "unknown")}


def forked(child):
    """Runs `child` in a forked process: what it returned, by way of a pipe."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writing, json.dumps(child()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        raw = pipe.read()
    how = os.waitpid(pid, 0)[1]
    if not raw:
        raise Malformed("the child ended with %d and gave no replies" % how)
    return {"status": "OK", "replies": json.loads(raw)}
