"""For all tests: signals as a terminal gives them. Whoever starts the tests may ignore some, as nohup and a shell's
background do; programs inherit that and rightly keep to it, but the tests send these signals.

Nodes are made, emptied and restarted in most tests: only those of the restart guard have it."""

import os
import signal

os.environ["REDLOCK_GUARD"] = "off"
os.environ["REDLOCK_MAX_TTL_MS"] = "86400000"  # many leases are long, so that none ends before its test

signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
    signal.signal(number, signal.SIG_DFL)
