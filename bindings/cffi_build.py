"""The recipe of the Python extension libredlock._core: the core's sources and cffi's wrapper in one shared object."""
import sys
from pathlib import Path

from cffi import FFI

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bindings"))
from cdef import declarations, has_stable_abi  # noqa: E402
from libraries import library  # noqa: E402

# Calls that follow each other: crossing into C once costs less than twice.
TOGETHER = """
/* A lock by a recipe: the size of its name, the name, then settings that were checked before: name, NUL, value, NUL,
 * ..., NUL. NULL if the process is another one than that of the generation, if the client is closed, or else if memory
 * is out: the caller asks for them in this order. */
static redlock_lock *make_lock(redlock_client *client, int64_t generation, const char *recipe, int renews)
{
  const char *at = recipe + sizeof(uint64_t);
  int status = REDLOCK_OK;
  uint64_t size;
  redlock_lock *lock;
  if (redlock_fork_generation() != generation)
    return NULL;
  memcpy(&size, recipe, sizeof size);
  lock = redlock_lock_new(client, at, (size_t)size);
  at += size;
  while (status == REDLOCK_OK && *at) {
    const char *value = at + strlen(at) + 1;
    status = redlock_lock_set(lock, at, value);
    at = value + strlen(value) + 1;
  }
  if (status == REDLOCK_OK && renews)
    status = redlock_lock_set(lock, "renew", "true");
  if (status == REDLOCK_OK && redlock_lock_state(lock) != REDLOCK_STATE_INVALID)
    return lock;
  redlock_lock_free(lock);
  return NULL;
}

/* Python's signal handlers run between two calls of the core, so the main thread never stays in one for longer. Other
 * threads look after WARN_AFTER_MS whether they wait for themselves. */
enum { SLICE_MS = 25, WARN_AFTER_MS = 1000 };
static uintptr_t main_thread; /* as threading.get_ident() has it */

static int run_operation(redlock_lock *lock, int operation, int64_t arg)
{
  int status = redlock_lock_start(lock, operation, arg);
  if (status != REDLOCK_OK)
    return status;
  status = redlock_lock_wait(lock, (uintptr_t)pthread_self() == main_thread ? SLICE_MS : WARN_AFTER_MS);
  return status == REDLOCK_INVALID ? REDLOCK_CANCELLED : status; /* the client was closed since it was started */
}

/* Below 0 if the lock is in another state than that one, unless it is 0: then nothing was done. */
static int start_operation(redlock_lock *lock, uint64_t tag, int operation, int64_t arg, int state)
{
  if (state && redlock_lock_state(lock) != state)
    return -1;
  redlock_lock_set_tag(lock, tag);
  return redlock_lock_start(lock, operation, arg);
}

/* Below 0 if the lock is not held: then nothing was done. */
static int release_held(redlock_lock *lock)
{
  return redlock_lock_state(lock) == REDLOCK_STATE_HELD ? redlock_lock_release(lock) : -1;
}
"""
TOGETHER_DECLARED = """
enum { SLICE_MS = 25, WARN_AFTER_MS = 1000 };
static uintptr_t main_thread;
redlock_lock *make_lock(redlock_client *client, int64_t generation, const char *recipe, int renews);
int run_operation(redlock_lock *lock, int operation, int64_t arg);
int start_operation(redlock_lock *lock, uint64_t tag, int operation, int64_t arg, int state);
int release_held(redlock_lock *lock);
"""

LINKED_WITH = ["-Wl,--version-script=python/exports.map", "-Wl,-z,nodelete"] if sys.platform != "darwin" else []
if sys.platform == "linux":
    LINKED_WITH.append("-ldl")  # elsewhere dlopen() is in libc


def builder():
    hiredis = library("hiredis")
    ffi = FFI()
    ffi.cdef(declarations(ROOT / "core/include/redlock.h") + TOGETHER_DECLARED)
    ffi.set_source(
        "libredlock._core",
        '#include "redlock.h"\n#include <pthread.h>\n#include <string.h>\n' + TOGETHER,
        sources=(ROOT / "core/sources.txt").read_text().split() + hiredis.sources,
        depends=["core/sources.txt", "python/exports.map", *map(str, sorted(ROOT.glob("core/**/*.h")))],
        include_dirs=["core/include"],
        define_macros=[("_GNU_SOURCE", "")],
        extra_compile_args=["-std=c11", "-O2", "-fvisibility=hidden", "-pthread", *hiredis.cflags],
        extra_link_args=[*LINKED_WITH, "-pthread", *hiredis.libs],
        py_limited_api=has_stable_abi(),
    )
    return ffi


ffibuilder = builder()
