"""Servers whose clocks a test can step: a library that is loaded into them adds to the time of day."""
import os
import struct
import subprocess
from pathlib import Path

# The clock of the machine, and so many microseconds more as the file says.
SHIM = """#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static int64_t offset_us(void)
{
  static volatile int64_t *offset;
  if (!offset)
    offset = mmap(0, 8, PROT_READ, MAP_SHARED, open(getenv("CLOCK_OFFSET"), O_RDONLY), 0);
  return *offset;
}
int clock_gettime(clockid_t clock, struct timespec *out)
{
  long status = syscall(SYS_clock_gettime, clock, out);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) {
    int64_t now_us = out->tv_sec * INT64_C(1000000) + out->tv_nsec / 1000 + offset_us();
    *out = (struct timespec){now_us / 1000000, now_us % 1000000 * 1000};
  }
  return (int)status;
}
int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  *out = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
  return 0;
}
time_t time(time_t *out)
{
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out)
    *out = now.tv_sec;
  return now.tv_sec;
}
"""

SERVER = """#!/bin/sh
LD_PRELOAD='%s' CLOCK_OFFSET='%s' exec '%s' "$@"
"""


class Clocks:
    """Of servers that begin with the clock of the machine; all files are in the folder."""

    def __init__(self, folder):
        self.folder, self.count = folder, 0
        source, self.shim = folder / "clock.c", folder / "clock.so"
        source.write_text(SHIM)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", self.shim, source], check=True)

    def servers(self, count):
        """Programs for that many nodes of a cluster, as it takes them: the first is that of the first node."""
        return ",".join(str(self._program()) for _ in range(count))

    def _program(self):
        program = self.folder / f"server{self.count}"
        offset = program.with_suffix(".offset")
        offset.write_bytes(bytes(8))
        servers = (os.environ.get("REDLOCK_SERVER") or "redis-server").split(",")
        program.write_text(SERVER % (self.shim, offset, servers[self.count % len(servers)]))
        program.chmod(0o755)
        self.count += 1
        return program

    @staticmethod
    def step(node, seconds):
        with open(Path(node.server).with_suffix(".offset"), "r+b") as file:
            now_us = struct.unpack("q", file.read(8))[0]
            file.seek(0)
            file.write(struct.pack("q", now_us + round(seconds * 1000000)))
