"""Draws the trace of a world as a space-time diagram in SVG: `sim --seed S --trace | python3 tests/sim/diagram.py`.

Each node and each process is a lane, time runs to the right. A bar on a node is a key, a bar on a process a lock that
it believes to hold; both have the colour of the token. Thin lines are requests and their answers, crosses are faults.
"""
import argparse
import re
import sys
from xml.sax.saxutils import escape

LANE, TOP, LEFT = 46, 40, 90
BEFORE_MS, AFTER_MS = 700, 20  # what is shown of a world with a violation
COLOURS = ["#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#76b7b2", "#edc948", "#9c755f", "#ff9da7"]
LINE = re.compile(r" *(\d+\.\d+)  (.*)")
NODE = re.compile(r"node (\d+)    (.*)")
PROCESS = re.compile(r"process (\d+)(?: lock (\d+))?:? (.*)")
SET = re.compile(r"#(\d+) SET (\S+) ([0-9a-f]{40}) NX PX (\d+) -> (\S+)")
SCRIPT = re.compile(r"#(\d+) EVAL(?:SHA)? .* ([0-9a-f]{40}).* -> (.*)")
EXTEND = re.compile(r"EVAL(?:SHA)? \S+ 1 \S+ (\d+) [0-9a-f]{40} -> \*1  :1")
LOSES = re.compile(r"loses the key of (\S+)|FLUSHALL|is killed|is replaced")
STOPS = re.compile(r"is (?:stopped|paused) for (\S+) ms")
RELEASES = ("starts operation 3", "release begins", "lapsed", "freed", "detach", "drain")


class Bar:
    def __init__(self, lane, begin_ms, end_ms, key, text):
        self.lane, self.begin_ms, self.end_ms, self.key, self.text = lane, begin_ms, end_ms, key, text


class World:
    """What the trace tells, line by line."""

    def __init__(self):
        self.bars, self.marks, self.stops, self.messages, self.lanes = [], [], [], [], set()
        self.keys, self.holds, self.written, self.executed = {}, {}, {}, {}
        self.tokens = {}  # the last of each process and resource that a node has granted
        self.end_ms, self.violation = 0, None

    def read(self, lines):
        for line in lines:
            match = LINE.match(line)
            if match:
                self.end_ms = float(match[1])
                self.line(self.end_ms, match[2])
        self.end_open_holds()

    def end_open_holds(self):
        """A lease that has lapsed unseen ended with its last key."""
        for bar in self.holds.values():
            keys = [key.end_ms for (_, token), key in self.keys.items() if token == bar.key]
            bar.end_ms = min([self.end_ms, *([max(keys)] if keys else [])])

    def line(self, now, text):
        node, process = NODE.match(text), PROCESS.match(text)
        if text.startswith("VIOLATION") and not self.violation:
            self.violation = (now, text[len("VIOLATION "):])
        elif node:
            self.node(now, "node " + node[1], node[2])
        elif process:
            self.process(now, "process " + process[1], process[2], process[3])

    # -- nodes

    def node(self, now, lane, text):
        self.lanes.add(lane)
        granted, script = SET.match(text), SCRIPT.match(text)
        if granted:
            self.message(now, granted[1], lane)
            if granted[5] == "+OK":
                self.keys[lane, granted[3]] = self.bar(lane, now, now + float(granted[4]), granted[3], granted[2])
                self.tokens[self.written.get(granted[1], ("",))[0], granted[2]] = granted[3]
        elif script:
            self.message(now, script[1], lane)
            self.script(now, self.keys.get((lane, script[2])), text, script[3])
        elif LOSES.match(text):
            self.lose(now, lane, LOSES.match(text)[1])
            self.marks.append((lane, now, text))
        elif not text.startswith("#"):
            self.note(now, lane, text)

    @staticmethod
    def script(now, key, text, reply):
        extended = EXTEND.search(text)
        if key and extended:
            key.end_ms = max(key.end_ms, now + float(extended[1]))
        elif key and reply.strip() in (":1", ":3"):
            key.end_ms = min(key.end_ms, now)

    def lose(self, now, lane, resource):
        for (where, _), bar in self.keys.items():
            if where == lane and resource in (None, bar.text) and bar.end_ms > now:
                bar.end_ms = now

    # -- processes

    def process(self, now, lane, lock, text):
        self.lanes.add(lane)
        words = text.split()
        if words[0].startswith("#"):
            self.stream(now, lane, words)
        elif lock is not None and text.startswith("holds "):
            token = self.tokens.get((lane, words[1]), lane + lock)
            self.holds[lane, lock] = self.bar(lane, now, float("inf"), token, "lock %s: %s" % (lock, words[1]))
        elif lock is not None and text.startswith(RELEASES):
            self.release(now, lane, lock)
        elif lock is None:
            if text.startswith(("is killed", "ends", "has left")):
                for where, one in list(self.holds):
                    if where == lane:
                        self.release(now, where, one)
            self.note(now, lane, text)

    def release(self, now, lane, lock):
        bar = self.holds.pop((lane, lock), None)
        if bar:
            bar.end_ms = now

    def stream(self, now, lane, words):
        number = words[0].lstrip("#")
        if words[1] == "writes":
            self.written[number] = (lane, now)
        elif words[1] == "reads" and number in self.executed:
            self.messages.append((*self.executed.pop(number), lane, now))

    # -- all of them

    def message(self, now, number, lane):
        if number in self.written:
            self.messages.append((*self.written[number], lane, now))
            self.executed[number] = (lane, now)

    def note(self, now, lane, text):
        stops = STOPS.match(text)
        if stops:
            self.stops.append(Bar(lane, now, now + float(stops[1]), None, text))
        elif text != "goes on":
            self.marks.append((lane, now, text))

    def bar(self, lane, begin_ms, end_ms, key, text):
        self.bars.append(Bar(lane, begin_ms, end_ms, key, text))
        return self.bars[-1]


class Picture:
    def __init__(self, world, begin_ms, end_ms, width):
        self.world, self.begin_ms, self.end_ms, self.width = world, begin_ms, end_ms, width
        self.lanes = sorted(world.lanes, key=lambda lane: (lane.split()[0] != "process", int(lane.split()[1])))
        self.colours = {}

    def x(self, ms):
        shown = min(max(ms, self.begin_ms), self.end_ms)
        return LEFT + (shown - self.begin_ms) / (self.end_ms - self.begin_ms) * self.width

    def y(self, lane):
        return TOP + self.lanes.index(lane) * LANE + LANE // 2

    def seen(self, begin_ms, end_ms):
        return end_ms >= self.begin_ms and begin_ms <= self.end_ms

    def colour(self, key):
        return self.colours.setdefault(key, COLOURS[len(self.colours) % len(COLOURS)])

    def rows(self):
        height = TOP + len(self.lanes) * LANE + 40
        yield ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">'
               % (LEFT + self.width + 30, height))
        yield '<rect width="100%" height="100%" fill="white"/>'
        yield from self.scale(height)
        for bar in self.world.stops:
            yield from self.box(bar, "#dddddd", 30)
        for begin_lane, begin_ms, end_lane, end_ms in self.world.messages:
            if self.seen(begin_ms, end_ms):
                yield ('<line class="message" x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#bbbbbb" stroke-width="0.6"/>'
                       % (self.x(begin_ms), self.y(begin_lane), self.x(end_ms), self.y(end_lane)))
        for bar in self.world.bars:
            yield from self.box(bar, self.colour(bar.key), 16 if bar.lane.startswith("process") else 10)
        for lane, now, text in self.world.marks:
            if self.seen(now, now):
                yield ('<text class="mark" x="%.1f" y="%d" fill="#c00000">&#215;<title>%s</title></text>'
                       % (self.x(now), self.y(lane) - 12, escape("%.3f ms: %s" % (now, text))))
        yield from self.violation(height)
        yield "</svg>"

    def scale(self, height):
        for lane in self.lanes:
            yield '<text x="6" y="%d">%s</text>' % (self.y(lane) + 4, lane)
            yield '<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#eeeeee"/>' % (
                LEFT, self.y(lane), LEFT + self.width, self.y(lane))
        for part in range(11):
            ms = self.begin_ms + (self.end_ms - self.begin_ms) * part / 10
            yield '<text x="%.1f" y="%d" text-anchor="middle" fill="#666666">%.1f ms</text>' % (
                self.x(ms), height - 12, ms)

    def box(self, bar, colour, thickness):
        if not self.seen(bar.begin_ms, bar.end_ms):
            return
        begin, end = self.x(bar.begin_ms), self.x(bar.end_ms)
        kind = bar.lane.split()[0] if bar.key else "stop"
        words = escape("%s, %.3f to %.3f ms" % (bar.text, bar.begin_ms, bar.end_ms))
        yield ('<rect class="%s" x="%.1f" y="%d" width="%.1f" height="%d" fill="%s" fill-opacity="0.75">'
               "<title>%s</title></rect>" % (kind, begin, self.y(bar.lane) - thickness // 2, max(end - begin, 1),
                                             thickness, colour, words))

    def violation(self, height):
        if not self.world.violation:
            return
        now, text = self.world.violation
        yield '<line class="violation" x1="%.1f" y1="22" x2="%.1f" y2="%d" stroke="red" stroke-width="2"/>' % (
            self.x(now), self.x(now), height - 28)
        yield '<text x="6" y="16" fill="red" font-size="12">%s</text>' % escape("%.3f ms: %s" % (now, text))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0], epilog="Trace on stdin, SVG on stdout.")
    parser.add_argument("--from", dest="begin_ms", type=float, help="ms (default: a while before a violation)")
    parser.add_argument("--to", dest="end_ms", type=float, help="ms (default: a little after it)")
    parser.add_argument("--width", type=int, default=1600, help="of the time shown, in pixels (default %(default)s)")
    options = parser.parse_args()
    if options.width < 100:
        sys.exit("diagram: --width is %d; allowed: 100 and more" % options.width)
    world = World()
    world.read(sys.stdin)
    if not world.lanes:
        sys.exit("diagram: this is no trace; ./dev sim --seed S --trace prints one")
    begin_ms, end_ms = options.begin_ms, options.end_ms
    if end_ms is None:
        end_ms = world.violation[0] + AFTER_MS if world.violation else world.end_ms
    if begin_ms is None:
        begin_ms = max(0, end_ms - BEFORE_MS) if world.violation else 0
    if begin_ms >= end_ms:
        sys.exit("diagram: --from %g is not before --to %g" % (begin_ms, end_ms))
    print("\n".join(Picture(world, begin_ms, end_ms, options.width).rows()))


if __name__ == "__main__":
    main()
