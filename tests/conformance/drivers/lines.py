"""What the drivers written in Python share: messages in and out, and the words of the suite in those of the package."""
import json
import os
import sys
import threading
import time

_out = threading.Lock()
FLOATS = {"retry_jitter", "drift_factor"}
INTS = {"retry_count", "max_extensions", "permits", "slot"}


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


def text(message, key):
    if not isinstance(message[key], str):
        raise Malformed('"%s" is no text' % key)
    return message[key]


def one_of(message, key, *allowed):
    if message[key] not in allowed:
        raise Malformed('"%s": %r is none of %s' % (key, message[key], ", ".join(allowed)))
    return message[key]


def resource(message):
    return _resource(message["resource"])


def resources(message):
    """One, or the list of those of a lock."""
    value = message["resource"]
    return [_resource(one) for one in value] if isinstance(value, list) else _resource(value)


def _resource(value):
    if isinstance(value, str):
        return value
    try:
        return bytes.fromhex(value["hex"])
    except (KeyError, TypeError, ValueError):
        raise Malformed('"resource": %r is neither a text nor {"hex": ...}' % value) from None


def options(message):
    if not isinstance(message["options"], dict):
        raise Malformed('"options" is no object')
    return dict(message["options"])


def commands(message):
    """Those of a fork."""
    if not isinstance(message["commands"], list):
        raise Malformed('"commands" is no list')
    return [Fields(command) for command in message["commands"]]


def known(kind, things, message):
    name = text(message, kind)
    if name not in things:
        raise Malformed('there is no %s "%s"' % (kind, name))
    return things[name]


def keyword(name):
    """Names of options by the rule: _ms is dropped, since values are seconds."""
    return name[:-3] if name.endswith("_ms") else name


def value(name, words):
    """What is no value of the option's type goes through as text, for the package to refuse."""
    try:
        if name.endswith("_ms") and words != "auto":
            return None if int(words) == -1 else int(words) / 1000
        if name in INTS:
            return None if int(words) == -1 else int(words)
        if name in FLOATS:
            return float(words)
    except ValueError:
        return words
    return {"true": True, "false": False}.get(words, words)


def keywords(options):
    return {keyword(name): value(name, words) for name, words in options.items()}


def failure(error):
    """An exception as a reply."""
    status = getattr(error, "status", None)
    return {"status": status.name if status is not None else "INVALID", "message": str(error),
            "error": type(error).__name__}


def facts(lock, t0_ms):
    """What an operation that was done left."""
    words = [vote.words for vote in lock.votes.values()]
    return {"t0_ms": t0_ms, "validity_ms": round(lock.remaining * 1000), "token": lock.token or "", "votes": words,
            "message": ", ".join("%s %s" % pair for pair in zip(lock.votes, words)), "fence": lock.fence,
            "slot": lock.slot}


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


class Driver:
    """What a driver is besides its commands, which are methods."""

    FAILURES = ()  # exceptions that are replies

    def __init__(self):
        self.clients, self.locks, self.started = {}, {}, {}
        self.number = 0

    def known(self, kind, message):
        return known(kind, self.clients if kind == "client" else self.locks, message)

    def command(self, message):
        run = getattr(self, message["do"], None)
        if run is None:
            raise Malformed('there is no command "%s"' % message["do"])
        return run

    def answer(self, message):
        try:
            return self.command(message)(message)
        except (Malformed, *self.FAILURES) as error:
            return self.problem(message, error)

    def problem(self, message, error):
        if isinstance(error, Malformed):
            return {"line": message.line, "malformed": str(error)}
        return failure(error)
