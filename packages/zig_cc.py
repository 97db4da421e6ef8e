"""A C compiler for setuptools: zig_cc.py ZIG TARGET ARGUMENT... compiles and links with the program ZIG for TARGET.

Only what the recipe of the extension asks for reaches zig. The flags with which the running Python was built are for
this machine, and setuptools adds them to every command.
"""

import os
import sys

KEPT = ("-c", "-shared", "-fPIC", "-pthread", "-ldl", "-std=", "-fvisibility=", "-I", "-D", "-U",
        "-Wl,--version-script", "-Wl,-z,", "-pie", "-w",
        "-Wno-")
OWN = ["-O2", "-s"]
PROGRAM = ["-dynamic"]  # also for musl: OpenSSL is loaded when a node speaks TLS


def kept(arguments):
    rest = iter(arguments)
    for argument in rest:
        if argument == "-o":
            yield from (argument, next(rest))
        elif not argument.startswith("-") or argument.startswith(KEPT):
            yield argument


def main(zig, target, *arguments):
    flags = OWN if {"-c", "-shared"} & set(arguments) else OWN + PROGRAM
    os.execv(zig, [zig, "cc", "-target", target, *flags, *kept(arguments)])


if __name__ == "__main__":
    main(*sys.argv[1:])
