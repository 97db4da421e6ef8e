"""Carries a Dockerfile out without Docker: every stage is a bare container, every line is done as it is written."""
import json
import re
import shlex
import shutil
from pathlib import Path

from bare import SUITE, Container


def instructions(text):
    lines = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", text, flags=re.M)).splitlines()
    return [line.split(None, 1) for line in lines if line.strip()]


class Image:
    """What FILE says, built from a folder CONTEXT. The debian:12-slim of its stages is this machine's release, BASE."""

    def __init__(self, file, context, base, above):
        self.context, self.base, self.above = Path(context), base, Path(above)
        self.stages, self.user, self.folder, self.entrypoint = {}, "0:0", "/", []
        for word, rest in instructions(file.read_text()):
            getattr(self, f"do_{word.lower()}")(rest)

    def do_from(self, rest):
        image, *name = re.split(r"\s+AS\s+", rest)
        assert re.fullmatch(r"debian:\d+-slim", image), f"{image} is not the base that this test has ({SUITE.group(1)})"
        number = str(len(self.stages))
        self.container = self.stages[name[0] if name else number] = Container(self.base, self.above / number)
        self.user, self.folder, self.entrypoint = "0:0", "/", []

    def do_run(self, rest):
        self.container.run(f"sh -c {shlex.quote(rest)}", self.folder)

    def do_workdir(self, rest):
        self.folder = rest
        self.container.run(f"mkdir -p {rest}")

    def do_copy(self, rest):
        words = rest.split()
        stage = words.pop(0).removeprefix("--from=") if words[0].startswith("--from=") else None
        source, target = words
        source = self.stages[stage].path(source) if stage else self.context / source
        shutil.copytree(source, self.container.path(str(Path(self.folder, target))), symlinks=True, dirs_exist_ok=True)

    def do_user(self, rest):
        self.user = rest

    def do_entrypoint(self, rest):
        self.entrypoint = json.loads(rest)  # in exec form

    def command(self, *words):
        """The line that starts words as the image's user."""
        user, group = self.user.split(":")
        return shlex.join(["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", *words])

    def run(self, *arguments, **environment):
        return self.container.run(self.command(*self.entrypoint, *arguments), **environment)
