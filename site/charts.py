"""Bar charts in SVG of the rows that the bench has written."""

from html import escape

WIDTH, LABEL, FIGURE, BAR = 500, 110, 70, 18  # FIGURE: room for the number behind the longest bar
GROUP_GAP, HEAD = 14, 20
SERIES = {"redlock": ("libredlock", "#3f51b5"), "hiredis": ("plain hiredis", "#9e9e9e"),
          "raw": ("raw sockets", "#c4c4c4")}

# name, title, unit, and for each group of bars its axis in the bench and what the reader sees
CHARTS = [
    ("sequential", "One lock after another: the time of a cycle, median", "µs", "shorter is better", {
        "sequential, by majority, p50": "when a majority has answered",
        "sequential, waiting for all, p50": "when all five nodes have answered",
    }),
    ("in-flight", "64 locks at once: cycles per second", "cycles/s", "longer is better", {
        "64 started, by majority": "started operations, one thread",
        "64 threads, by majority": "64 threads on one client",
    }),
    ("contention", "One lock for all, held 5 ms: acquisitions per second", "acquired/s", "longer is better", {
        "alone, hold 5 ms": "one process alone",
        "16 contend": "16 processes",
        "64 contend": "64 processes",
        "16 contend, wake=poll": "16 processes, without being woken (wake = poll)",
    }),
]


def number(value):
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.4g}"


def words_of(rows):
    """What the picture shows, for those who cannot see it."""
    return "; ".join(f"{label}: " + ", ".join(f"{SERIES[series][0]} {number(row[series])}" for series in SERIES
                                              if row.get(series) is not None) for label, row in rows.items())


def draw(title, unit, better, rows):
    longest = max(row[series] for row in rows.values() for series in SERIES if row.get(series) is not None)
    scale = (WIDTH - LABEL - FIGURE) / longest
    y, parts = HEAD, []
    for label, row in rows.items():
        y += GROUP_GAP + BAR
        parts.append(f'<text x="0" y="{y - 6}" font-weight="bold">{escape(label)}</text>')
        for series, (name, colour) in SERIES.items():
            if row.get(series) is None:
                continue
            length = row[series] * scale
            parts += [f'<text x="0" y="{y + 14}">{name}</text>',
                      f'<rect x="{LABEL}" y="{y + 1}" width="{length:.1f}" height="{BAR - 3}" fill="{colour}"/>',
                      f'<text x="{LABEL + length + 6:.1f}" y="{y + 14}">{number(row[series])}</text>']
            y += BAR
    head = f'<text x="0" y="14" fill="#666">{escape(unit)}; {better}</text>'
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-12 -8 {WIDTH + 24} {y + 24}" width="{WIDTH + 24}"'
            f' height="{y + 24}" font-family="sans-serif" font-size="14"><title>{escape(title)}</title>'
            f'<rect x="-12" y="-8" width="100%" height="100%" fill="white"/>{head}{"".join(parts)}</svg>\n')


def charts_of(rows):
    """Name, title, words and SVG of each chart that the rows have figures for."""
    by_axis = {row["axis"]: row for row in rows}
    for name, title, unit, better, groups in CHARTS:
        shown = {label: by_axis[axis] for axis, label in groups.items() if axis in by_axis}
        if shown:
            yield name, title, words_of(shown), draw(title, unit, better, shown)
