"""Reads the log of a soak and tells what must not happen. Times are ms of CLOCK_MONOTONIC.

Records, one JSON object a line:
  hold   resource, token, party, from_ms (acquire had returned), to_ms (release was called, or t0 + validity if
         earlier), shared (true: others that share may hold it, too), permits (how many may hold it at a time; 0: it
         is no permit), slot (of a permit, else 0)
  wait   party, what, from_ms, to_ms (null: it never ended), limit_ms
  key    node, key, token, at_ms, pttl_ms (-1: it never ends), limit_ms (what it may have left at most; 0: nothing may
         be left), gone_ms (how long after the token's last hold, or the first sight of it, it may be seen at most)
  told   party, token, ended_ms (t0 + validity), at_ms, state (what the holder's handle said then)
  over   party, by_ms: validity was over-stated
  end    party, status: a process ended by itself
"""
import json
import sys
from collections import defaultdict


class BadLog(Exception):
    """A record that is none; the words name the line."""


FIELDS = {"hold": {"resource", "token", "party", "from_ms", "to_ms"},
          "wait": {"party", "what", "from_ms", "to_ms", "limit_ms"},
          "key": {"node", "key", "token", "at_ms", "pttl_ms", "limit_ms", "gone_ms"},
          "told": {"party", "token", "ended_ms", "at_ms", "state"}, "over": {"party", "by_ms"},
          "end": {"party", "status"}}


def read(lines, name="log"):
    records = []
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
            missing = FIELDS[record["kind"]] - set(record)
        except (ValueError, KeyError, TypeError) as error:
            raise BadLog("%s, line %d: no record: %r" % (name, number, error)) from None
        if missing:
            raise BadLog("%s, line %d: %s is missing" % (name, number, ", ".join(sorted(missing))))
        records.append(record)
    return records


def check(records):
    """Every violation in words."""
    by_kind = defaultdict(list)
    for record in records:
        by_kind[record["kind"]].append(record)
    return [*overlaps(by_kind["hold"]), *crowds(by_kind["hold"]), *endless_waits(by_kind["wait"]),
            *lasting_keys(by_kind["key"]), *keys_without_holders(by_kind["key"], by_kind["hold"]),
            *untold_losses(by_kind["told"]), *overstatements(by_kind["over"]), *ends(by_kind["end"])]


def grouped(holds, key):
    """Those that last, in the order in which they begin."""
    groups = defaultdict(list)
    for hold in sorted(holds, key=lambda hold: hold["from_ms"]):
        if hold["to_ms"] > hold["from_ms"]:
            groups[key(hold)].append(hold)
    return groups.items()


def crowds(holds):
    """More holders at a time than there are permits, whatever their slots."""
    for resource, some in grouped(holds, lambda hold: hold["resource"]):
        permits, now = max(hold.get("permits", 0) for hold in some), []
        for hold in some if permits else []:
            now = [one for one in now if one["to_ms"] > hold["from_ms"]] + [hold]
            if len(now) > permits:
                yield "too many holders: %s held %s together, of %d permits" % (
                    ", ".join(sorted(one["party"] for one in now)), resource, permits)


def overlaps(holds):
    for (resource, _), some in grouped(holds, lambda hold: (hold["resource"], hold.get("slot", 0))):
        last = {}  # by whether they share: the one that ends last
        for hold in some:
            shares = hold.get("shared", False)
            for other in [last[how] for how in (False, True) if how in last and not (how and shares)]:
                if hold["from_ms"] < other["to_ms"] and hold["token"] != other["token"]:
                    yield "two holders: %s and %s held %s together for %.3f ms" % (
                        other["party"], hold["party"], resource, min(other["to_ms"], hold["to_ms"]) - hold["from_ms"])
            if shares not in last or hold["to_ms"] > last[shares]["to_ms"]:
                last[shares] = hold


def endless_waits(waits):
    for wait in waits:
        if wait["to_ms"] is None:
            yield "wait without end: %s of %s" % (wait["what"], wait["party"])
        elif wait["to_ms"] - wait["from_ms"] > wait["limit_ms"]:
            yield "wait too long: %s of %s took %.0f ms, %.0f are allowed" % (
                wait["what"], wait["party"], wait["to_ms"] - wait["from_ms"], wait["limit_ms"])


def lasting_keys(keys):
    for key in keys:
        if key["pttl_ms"] == -1 or key["pttl_ms"] > key["limit_ms"]:
            yield "key that outlives its time: %s on %s, %s ms left, %s are allowed" % (
                key["key"], key["node"], key["pttl_ms"], key["limit_ms"])


def keys_without_holders(keys, holds):
    """A key that somebody prolongs for ever has a good TTL at every sight."""
    last_ms = {}
    for hold in holds:
        last_ms[hold["token"]] = max(hold["to_ms"], last_ms.get(hold["token"], hold["to_ms"]))
    seen_ms = {}
    for key in sorted(keys, key=lambda key: key["at_ms"]):
        first_ms = seen_ms.setdefault(key["token"], key["at_ms"])
        since_ms = key["at_ms"] - max(first_ms, last_ms.get(key["token"], first_ms))
        if since_ms > key["gone_ms"]:
            yield "key that outlives its holder: %s of %s on %s after %.0f ms, %s are allowed" % (
                key["key"], key["token"], key["node"], since_ms, key["gone_ms"])


def untold_losses(told):
    for one in told:
        if one["at_ms"] > one["ended_ms"] and one["state"] == "HELD":
            yield "loss not told: %s is told that it holds %s, %.3f ms after its validity" % (
                one["party"], one["token"], one["at_ms"] - one["ended_ms"])


def overstatements(over):
    for one in over:
        yield "validity over-stated by %.3f ms in %s" % (one["by_ms"], one["party"])


def ends(some):
    for one in some:
        yield "ended by itself: %s with status %s" % (one["party"], one["status"])


def main(path):
    with open(path, encoding="utf-8") as lines:
        try:
            violations = check(read(lines, path))
        except BadLog as error:
            sys.exit(str(error))
    print("\n".join(violations) or "no violation")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
