"""The faces of the library, what each can, and what it lacks and why. A face is a driver: see README.md."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DRIVERS = HERE / "drivers"
BUILD = Path(os.environ.get("REDLOCK_BUILD_DIR") or ROOT / "build/dev")
PYTHON = os.environ.get("REDLOCK_PYTHON") or str(ROOT / "build/venv-python/bin/python")
PHP = os.environ.get("REDLOCK_PHP") or "php"
EXTENSION = os.environ.get("REDLOCK_PHP_EXTENSION") or str(BUILD / "php/redlock.so")
SWOOLE = os.environ.get("REDLOCK_PHP_SWOOLE") or "swoole"
AUTOLOAD = os.environ.get("REDLOCK_PHP_AUTOLOAD") or ""

CAPABILITIES = {
    "lock": "a client, and locks with options of their own",
    "acquire": "acquires a lock and waits for it",
    "start": "starts an operation and does something else meanwhile",
    "wait": "waits for what was started",
    "extend": "extends a lease",
    "release": "releases a lock",
    "state": "says without I/O whether a lock is held or lost, and distinguishes never acquired from lost",
    "validity": "says how much longer a lock is held",
    "detach": "hands a lock over",
    "adopt": "adopts a lock by its token",
    "cancel": "cancels a wait",
    "fork": "forks a process",
    "exit": "leaves the process while holding locks",
    "exception": "leaves the process by an uncaught error",
    "status": "asks the nodes for the holder of a resource",
    "describe": "describes its nodes",
    "renew": "renews a lock acquired without a scope",
    "body": "holds a lock around a body of code, renewed",
    "nul": "accepts resources with NUL bytes",
    "reentrant": "acquires again what it holds",
    "sharing": "lets several threads, tasks or Fibers use one lock object, each for a hold of its own",
    "election": "stands for election",
    "close": "closes a client while its locks are held, and asks them afterwards",
}


def _php_says(code, *options):
    try:
        return subprocess.run([PHP, *options, "-r", "exit(%s ? 0 : 1);" % code, AUTOLOAD],
                              capture_output=True).returncode == 0
    except OSError:
        return False


_HAS_REVOLT = 'is_file($argv[1]) && (require $argv[1]) && class_exists("Revolt\\\\EventLoop")'
_HAS_SWOOLE = 'extension_loaded("swoole")'
_WITH_SWOOLE = [] if _php_says(_HAS_SWOOLE) else ["-d", "extension=" + SWOOLE]  # twice would be a warning
_DRIVER = ["-d", "extension=" + EXTENSION, str(DRIVERS / "driver.php")]
# A PHP starts in half the time without what its php.ini has it load; tests/php runs with that.
_BARE = ["-n"] if _php_says('extension_loaded("posix")', "-n") else ["-n", "-d", "extension=posix"]

ARGV = {
    "c": [sys.executable, str(DRIVERS / "driver_c.py")],
    "cli": [sys.executable, str(DRIVERS / "driver_cli.py")],
    "python": [PYTHON, str(DRIVERS / "driver_python.py")],
    "aio": [PYTHON, str(DRIVERS / "driver_aio.py")],
    "php": [PHP, *_BARE, *_DRIVER],
    "fiber": [PHP, *_BARE, *_DRIVER, "fiber"],
    "revolt": [PHP, *_DRIVER, "revolt", AUTOLOAD],
    "swoole": [PHP, *_WITH_SWOOLE, *_DRIVER, "swoole"],
}
SOURCES = {"c": "driver_c.py", "cli": "driver_cli.py", "python": "driver_python.py", "aio": "driver_aio.py",
           "php": "driver.php", "fiber": "driver.php", "revolt": "driver.php", "swoole": "driver.php"}

# What a face lacks, and why: reviewed by people, compared with what its driver says. Anything else that is missing
# fails.
_PROCESS = "a run of the command is a process of its own: it keeps no handle"
_BODIES = {"election": "a term lasts as long as the body of run()"}
LACKS = {
    "c": {
        "exception": "C has no exceptions",
        "body": "C has no scoped form",
        "sharing": "a handle is one holder's",
        "election": "C has no election: a leader is whoever holds a renewed lock",
        "close": "C frees the client",
    },
    "cli": {
        "state": _PROCESS,
        "validity": _PROCESS,
        "fork": _PROCESS,
        "exit": _PROCESS,
        "exception": _PROCESS,
        "describe": "the command has no such subcommand",
        "renew": "only `redlock run` renews: see body",
        "nul": "an argument of a command cannot hold a NUL byte",
        "reentrant": _PROCESS,
        "sharing": _PROCESS,
        "election": "a candidate is a process of its own",
        "close": _PROCESS,
    },
    "python": {},
    "aio": {},
    "php": {
        **_BODIES,
        "sharing": "whoever shares an object is a Fiber or a coroutine",
        "start": "a blocking call has the only thread of PHP",
        "wait": "a blocking call has the only thread of PHP",
    },
    "fiber": _BODIES,
    "revolt": _BODIES,
    "swoole": _BODIES,
}

# Faces that may be absent, and why; if the variable that names what they need is set, they are required.
OPTIONAL = {
    "revolt": ("REDLOCK_PHP_AUTOLOAD", "revolt/event-loop is in no package of Debian 12"),
    "swoole": ("REDLOCK_PHP_SWOOLE", "the extension swoole is in no package of Debian 12"),
}
_AT_HAND = {"revolt": _php_says(_HAS_REVOLT), "swoole": _php_says(_HAS_SWOOLE, *_WITH_SWOOLE)}
ABSENT = {face: "%s; $%s may name it" % (reason, variable) for face, (variable, reason) in OPTIONAL.items()
          if not _AT_HAND[face] and not os.environ.get(variable)}
ALL = list(ARGV)
FACES = [face for face in ALL if face not in ABSENT]


def environment(build=BUILD, **more):
    return dict(os.environ, REDLOCK_BIN=str(build / "redlock"), REDLOCK_LIBRARY=str(build / "libredlock.so"),
                PYTHONUNBUFFERED="1", **more)


def missing(face):
    """Why a driver cannot be started, or None."""
    program = ARGV[face][0]
    if not shutil.which(program):
        return "%s is not there" % program
    if program == PHP and not os.path.exists(EXTENSION):
        return "the PHP extension is not built: %s" % EXTENSION
    if not _AT_HAND.get(face, True):
        variable, _ = OPTIONAL[face]
        return "PHP cannot load it; $%s is %r" % (variable, os.environ.get(variable, ""))
    return None
