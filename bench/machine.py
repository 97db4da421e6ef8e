"""The machine on which the bench runs: its cores, and what it is."""
import os
import platform
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict, Iterator

CORES = sorted(os.sched_getaffinity(0))


@contextmanager
def on_two_cores() -> Iterator[None]:
    """What is started meanwhile may run on the core of the bench and on another one."""
    core, = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core, *[other for other in CORES if other != core][:1]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, {core})


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def idle_ticks() -> Dict[int, int]:
    lines = Path("/proc/stat").read_text().splitlines()
    cores = {int(m.group(1)): line for line in lines if (m := re.match(r"cpu(\d+) ", line))}
    return {core: int(line.split()[4]) for core, line in cores.items() if core in os.sched_getaffinity(0)}


def idlest_core() -> int:
    before = idle_ticks()
    time.sleep(0.5)
    after = idle_ticks()
    return max(after, key=lambda core: after[core] - before[core])


def processor() -> str:
    model = re.search(r"^model name\s*: (.+)", Path("/proc/cpuinfo").read_text(), re.M)  # not on every architecture
    return model.group(1) if model else platform.machine()


def machine(core: int) -> Dict[str, Any]:
    server = subprocess.run(["redis-server", "--version"], stdout=subprocess.PIPE, text=True).stdout
    return {"date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"), "processor": processor(),
            "pinned_to_core": core, "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 2),
            "server": re.search(r"v=(\S+)", server).group(1)}
