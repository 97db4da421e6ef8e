"""For all tests: signals as a terminal gives them. Whoever starts the tests may ignore some, as nohup and a shell's
background do; programs inherit that and rightly keep to it, but the tests send these signals."""

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
    signal.signal(number, signal.SIG_DFL)
