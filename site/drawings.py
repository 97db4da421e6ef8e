"""Drawings, as text, of what goes wrong without a rule: a time axis for each client and node, and one sentence."""

from html import escape

WIDTH, LEFT, TOP, LANE, FOOT = 660, 84, 30, 40, 46
TEXT, A, B, BAD = "#333333", "#4e79a7", "#f28e2b", "#c62828"
COLOURS = {"A": A, "B": B, "-": "#9e9e9e"}

# Of each mutant: the sentence, the length of the time axis, and lanes with bars (from, to, whose, words) and with dots
# (time, words). The overlap is the time in which two clients believe to hold the lock.
DRAWINGS = {
    "blind-delete": (
        "A's late deletes remove B's key on nodes 2 and 3, so C finds a majority free while B still works.",
        12, (8.4, 11), [
            ("client A", [(0.4, 3, "A", "holds")], [(3, "releases; its deletes to 2 and 3 are late")]),
            ("client B", [(3.6, 11, "B", "holds")], []),
            ("client C", [(8.4, 11.6, "-", "holds, too")], []),
            ("node 1", [(0.2, 3, "A", "A"), (3.4, 11, "B", "B")], []),
            ("node 2", [(0.2, 3, "A", "A"), (3.4, 7.4, "B", "B"), (8.2, 11.6, "-", "C")], [(7.4, "late")]),
            ("node 3", [(0.2, 3, "A", "A"), (3.4, 7.4, "B", "B"), (8.2, 11.6, "-", "C")], [(7.4, "late")]),
        ]),
    "clock-at-reply": (
        "The key lives from the request, A counts from the reply: B gets the lock while A believes it is still A's.",
        12, (8.4, 10.8), [
            ("client A", [(3.8, 10.8, "A", "believes to hold for a TTL from the reply")], [(0.4, "asks")]),
            ("client B", [(8.4, 11.8, "B", "holds, too")], []),
            ("node 1", [(0.8, 7.8, "A", "A, for a TTL from the request"), (8.2, 11.8, "B", "B")], []),
            ("node 2", [(0.8, 7.8, "A", "A"), (8.2, 11.8, "B", "B")], []),
            ("node 3", [], [(0.8, "does not answer")]),
        ]),
    "no-guard": (
        "Node 2 restarts without A's key and votes at once, so with node 3 it gives B a second majority.",
        12, (6.4, 10), [
            ("client A", [(0.8, 10, "A", "holds: nodes 1 and 2 granted")], []),
            ("client B", [(6.4, 11.6, "B", "holds, too: nodes 2 and 3 granted")], []),
            ("node 1", [(0.4, 10, "A", "A")], []),
            ("node 2", [(0.4, 4, "A", "A"), (6, 11.6, "B", "B")], [(4, "is emptied")]),
            ("node 3", [(6, 11.6, "B", "B")], []),
        ]),
}


def text(x, y, words, fill=TEXT, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{fill}"{more}>{escape(words)}</text>'


def draw(name):
    sentence, length, (begin, end), lanes = DRAWINGS[name]
    bottom = TOP + LANE * len(lanes)

    def x(time):
        return LEFT + time * (WIDTH - LEFT) / length

    parts = [f'<rect class="overlap" x="{x(begin):.1f}" y="{TOP - 4}" width="{x(end) - x(begin):.1f}"'
             f' height="{bottom - TOP + 4}" fill="{BAD}" opacity="0.14"/>',
             text(x(begin), TOP - 10, "two holders", BAD, ' font-weight="bold"')]
    for i, (lane, bars, dots) in enumerate(lanes):
        top = TOP + LANE * i
        parts += [text(0, top + 21, lane), f'<path d="M{LEFT} {top + 31}H{WIDTH}" stroke="#cccccc"/>']
        for since, until, whose, words in bars:
            parts += [f'<rect class="{lane.split()[0]}" x="{x(since):.1f}" y="{top + 4}" rx="3"'
                      f' width="{x(until) - x(since):.1f}" height="24" fill="{COLOURS[whose]}"/>',
                      text(x(since) + 6, top + 21, words, "white")]
        for time, words in dots:
            parts += [f'<circle cx="{x(time):.1f}" cy="{top + 31}" r="4" fill="{BAD}"/>',
                      text(x(time) + 8, top + 21, words)]
    parts += [f'<path d="M{LEFT} {bottom + 10}H{WIDTH - 4}m-7 -4l7 4l-7 4" fill="none" stroke="{TEXT}"/>',
              text(LEFT, bottom + 28, "time")]
    width, height = WIDTH + 24, bottom + FOOT
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-12 -8 {width} {height}" width="{width}"'
            f' height="{height}" font-family="sans-serif" font-size="14"><title>{escape(sentence)}</title>'
            f'<rect x="-12" y="-8" width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n')
