"""The model servers run the scripts as real ones do: each on random states, with one reply and the same keys after.

Time does not stand still on a real server. What a script reads of the clock is the same on both sides; remaining times
are multiples of ten seconds, and count as the same if they differ by less than half of that."""

import os
import pathlib
import random
import re
import subprocess

import pytest

from testing import Cluster
from testing.resp import RespConnection, encode

pytestmark = pytest.mark.timeout(300)

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIM = os.environ.get("REDLOCK_SIM", ROOT / "build/testbuild/tests/sim/sim")
NAMES = {"release", "extend", "expire", "proof", "place", "hand over", "leave", "register", "claim", "drop", "look",
         "form", "fence", "raise", "pick"}
STATES = int(os.environ.get("REDLOCK_SCRIPT_STATES", 150))
NEAR_MS = 5000

OWN, OTHER = "0123456789abcdef" * 2 + "01234567", "fedcba9876543210" * 2 + "fedcba98"
PERMIT_OF_3, PERMIT_OF_4 = OTHER[:37] + "p02", OTHER[:37] + "p03"
KEYS = ["orders:0", "libredlock:s:1:orders:0", "libredlock:s:2:orders:0"]
QUEUE, PROMISES, FENCE, MARKER = ("libredlock:%s:orders:0" % kind for kind in "qpfm")
PLACES = ["97222d675d43d657:8", "97222d675d43d657:9", "a7222d675d43d657/4", "b7222d675d43d657/11", "c7222d675d43d657:2",
          "d7222d675d43d657:s6", "e7222d675d43d657:p1,5"]
ALL = [*KEYS, QUEUE, PROMISES, FENCE, MARKER]

SHOW = """local all={}
for i,k in ipairs(KEYS) do
  local y,v=redis.call('TYPE',k).ok,''
  if y=='string' then v=redis.call('GET',k)
  elseif y=='zset' then v=redis.call('ZRANGE',k,0,-1,'WITHSCORES')
  elseif y=='hash' then v=redis.call('HRANDFIELD',k,100) table.sort(v) end
  all[i]={k,y,redis.call('PTTL',k),v}
end
return all"""

STOPPED_CLOCK = """local redis=(function(r,t) local function with(f) return function(c,...) \
if c=='TIME' then return {t[1],t[2]} end return f(c,...) end end \
return {call=with(r.call),pcall=with(r.pcall),error_reply=r.error_reply,status_reply=r.status_reply} end)\
(redis,{'%d','%d'}) """


class Model(RespConnection):
    """`sim --serve`, asked as a server is."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([SIM, "--serve", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        self.file = self.process.stdout

    def pipeline(self, commands):
        self.process.stdin.write(b"".join(encode(*c) for c in commands))
        self.process.stdin.flush()
        return [self.read() for _ in commands]

    def end(self):
        """Its exit status, and what it says."""
        self.process.stdin.close()
        said = self.process.stderr.read().decode()
        return self.process.wait(30), said


@pytest.fixture
def model(real):
    model = Model()
    major = int(re.search(rb"redis_version:(\d+)", real.command("INFO", "server"))[1])
    model.command("VERSION", "old" if major < 7 else "new")
    yield model
    model.process.kill()
    model.process.wait(30)
    for pipe in model.process.stdin, model.process.stdout, model.process.stderr:
        pipe.close()


@pytest.fixture(scope="module")
def real():
    with Cluster(1, bootstrapped=False) as cluster:
        connection = RespConnection(cluster.nodes[0].address)
        yield connection
        connection.close()


def shipped():
    """The scripts that worlds have sent to servers, by text their names: of as many worlds as it takes for all."""
    scripts = {}
    for first in range(1, 4000, 200):
        scripts.update(sent(first))
        if NAMES <= set(scripts.values()):
            break
    return [(name, text) for text, name in scripts.items()]


def sent(first):
    run = subprocess.run([SIM, "--mixed", "--first", str(first), "--seeds", "200", "--scripts"], capture_output=True,
                         text=True, timeout=120)
    text = run.stdout
    text = text[text.index("\n") + 1:]
    while text:
        name, size = re.match(r"([a-z ]+), (\d+) bytes\n", text).groups()
        text = text[text.index("\n") + 1:]
        yield text[:int(size)], name
        text = text[int(size) + 1:]


# ---- random states ----


def ttl(draw):
    return draw.choice([10000, 20000, 30000, 60000])


def a_lock(draw, key, now_ms):
    """Commands that leave a key as locks have it, or as others do."""
    kind = draw.choice(["none", "none", "own", "own", "other", "permit", "text", "hash", "readers", "readers",
                        "strangers"])
    until = now_ms + ttl(draw)
    ends = [("PEXPIREAT", key, until)] if draw.random() < 0.9 else []
    if kind in ("own", "other", "permit", "text"):
        value = {"own": OWN, "other": OTHER, "permit": draw.choice([PERMIT_OF_3, PERMIT_OF_4]), "text": "by hand"}[kind]
        return [("SET", key, value), *ends]
    if kind == "hash":
        fields = draw.choice([[OWN], [OTHER], [OWN, OTHER]])
        return [*(("HSET", key, field, "1") for field in fields), *ends]
    if kind in ("readers", "strangers"):
        names = draw.sample([OWN, OTHER, OWN[::-1]], draw.randint(1, 3))
        members = ["rl:" + name for name in names] + (["a member"] if kind == "strangers" else [])
        return [*(("ZADD", key, now_ms + draw.choice([-20000, 10000, 20000, 60000]), member) for member in members),
                *ends]
    return []


def a_queue(draw, now_us):
    if draw.random() < 0.1:
        return [("SET", QUEUE, "by hand")]
    commands = []
    for place in draw.sample(PLACES, draw.randint(0, len(PLACES))):
        commands.append(("ZADD", QUEUE, now_us - draw.choice([0, 1, 1, 1234567, 50000000]), place))
        if draw.random() < 0.8:
            commands.append(("ZADD", PROMISES, now_us + draw.choice([-1000000, 0, 1, 250000, 70000000]), place))
    if commands and draw.random() < 0.5:
        commands += [("PEXPIRE", QUEUE, "30000"), ("PEXPIRE", PROMISES, "30000")]
    return commands


def a_fence(draw, now_us):
    number = draw.choice([None, None, 1, now_us - 5000000, now_us - 1, now_us + 1, now_us + 999999999, 9007199254740990,
                          9007199254740993, -3, "2.5", "by hand"])
    if number is None:
        return [("HSET", FENCE, "a", "1")] if draw.random() < 0.1 else []
    return [("SET", FENCE, number), ("PEXPIRE", FENCE, "50000")]


def a_state(draw, now_us):
    commands = [command for key in KEYS for command in a_lock(draw, key, now_us // 1000)]
    commands += a_queue(draw, now_us) + a_fence(draw, now_us)
    return commands + draw.choice([[], [("SET", MARKER, "v2 one")], [("SET", MARKER, "")]])


def arguments(draw, name, now_us):
    """Keys, and what follows them."""
    token, ms = draw.choice([OWN, OWN, OTHER]), ttl(draw) + 5000
    some = KEYS[:draw.randint(1, 3)]
    queue = [KEYS[0], QUEUE, PROMISES]
    slots = queue + (KEYS[1:] if draw.random() < 0.5 else [])
    place = draw.choice(PLACES)
    if name == "extend":
        return some, [ms, *(draw.choice([OWN, OTHER]) for _ in some)]
    if name == "raise":
        return [KEYS[0], FENCE], [token, draw.choice([now_us, now_us + 5, 1])]
    return {
        "release": lambda: (KEYS[:1], [token]),
        "expire": lambda: (KEYS[:1], [token, ms]),
        "proof": lambda: (["libredlock:proof:1"], []),
        "place": lambda: (slots, [place, draw.choice([0, 7, 3000000]), 400000, 250000, 600000, 150000, "libredlock:w:",
                                  *draw.choice([["", ""], [now_us - 1000000, 0], [now_us - 1000000, 2000000]]),
                                  draw.choice([0, 7, 999])]),
        "hand over": lambda: (queue, [token, draw.choice(["", place]), "libredlock:w:", 150000]),
        "leave": lambda: (slots, [draw.choice(["", place]), "libredlock:w:", 150000, draw.choice(["", "1"])]),
        "register": lambda: ([MARKER], [draw.choice(["", "v2 one", "v2 two"]), "v2 run ", draw.choice(["", "5"]),
                                        " 3 -"]),
        "claim": lambda: (some, [token, ms, draw.choice("xsh"), draw.choice("012")]),
        "drop": lambda: (some, [token, draw.choice("xsh")]),
        "look": lambda: (KEYS[:1], []),
        "form": lambda: (some, [token]),
        "fence": lambda: ([KEYS[0], FENCE], [token, ms, now_us + draw.choice([-9000000, -999, 10000, 5000000]),
                                             draw.choice(["", "1"])]),
        "pick": lambda: (KEYS, [token, ms, draw.randint(0, 2), draw.choice([1, 3])]),
    }[name]()


# ---- the comparison ----


def seen(reply):
    """Without where an error happened, which the stopped clock of the real server moves."""
    if isinstance(reply, Exception):
        return "error: " + re.sub(r"( script: .*|@?user_script: ?[0-9]+: |f_[0-9a-f]{40})", "", str(reply))
    if isinstance(reply, list):
        return [seen(element) for element in reply]
    return reply.decode() if isinstance(reply, bytes) else reply


def is_same(one, other):
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, str) and isinstance(other, str) and re.fullmatch(r"1\d{12}", one) and other.isdigit():
        one, other = int(one), int(other)  # the end of a lease in ms
    if isinstance(one, int) and isinstance(other, int) and 1000 < min(one, other) < 1e13:  # ms, not us
        return abs(one - other) < NEAR_MS
    return one == other


def put(server, commands):
    for reply in server.pipeline([("EVAL", "return redis.call(unpack(ARGV))", 0, *command) for command in commands]):
        assert not isinstance(reply, Exception), reply


def fill(real, model, is_full):
    real.command("CONFIG", "SET", "maxmemory", int(is_full))
    model.command("STATE", "full" if is_full else "ok")


def run_both(real, model, text, state, keys, values, now_us, is_full=False):
    """The replies and the keys after: of the real server, of the model."""
    real.command("FLUSHALL")
    model.pipeline([("CLEAR",), ("CLOCK", now_us)])
    for server in real, model:
        put(server, state)
    stopped = STOPPED_CLOCK % divmod(now_us, 1000000) + text
    if is_full:
        fill(real, model, True)
    outcomes = []
    for server, script in (real, stopped), (model, text):
        reply, keys_after = server.pipeline([("EVAL", script, len(keys), *keys, *values),
                                             ("EVAL", SHOW, len(ALL), *ALL)])
        outcomes.append([seen(reply), seen(keys_after)])
    if is_full:
        fill(real, model, False)
    return outcomes


def clock_us(real):
    seconds, micros = real.command("TIME")
    return int(seconds) * 1000000 + int(micros)


def compare(real, model, states):
    names = set()
    for number, (name, text) in enumerate(shipped()):
        names.add(name)
        draw = random.Random(number)
        for i in range(states):
            now_us = clock_us(real)
            state, (keys, values) = a_state(draw, now_us), arguments(draw, name, now_us)
            expected, got = run_both(real, model, text, state, keys, values, now_us)
            assert is_same(expected, got), (name, i, state, keys, values, expected, got)
    return names


def test_every_script_does_what_it_does_on_a_real_server(real, model):
    assert compare(real, model, STATES) == NAMES


def test_a_full_server_refuses_what_takes_memory(real, model):
    texts = {}
    for name, text in shipped():
        texts.setdefault(name, text)
    now_us = clock_us(real)
    place = ["97222d675d43d657:8", 0, 400000, 250000, 600000, 150000, "libredlock:w:", "", ""]
    waits = [("ZADD", QUEUE, now_us - 1000000, place[0]), ("ZADD", PROMISES, now_us + 100000, place[0])]
    end_ms = now_us // 1000 + 60000
    reader = [("ZADD", KEYS[0], end_ms, "rl:" + OWN), ("PEXPIREAT", KEYS[0], end_ms)]
    cases = [("fence", [], [KEYS[0], FENCE], [OWN, 20000, 1, "1"]), ("pick", [], KEYS, [OWN, 20000, 0, 3]),
             ("claim", [], KEYS, [OWN, 20000, "x", "1"]), ("claim", [], KEYS, [OWN, 20000, "s", "1"]),
             ("claim", [("SET", KEYS[0], OWN), ("PEXPIRE", KEYS[0], 60000)], KEYS[:1], [OWN, 20000, "s", "0"]),
             ("claim", [], KEYS[:1], [OWN, 20000, "h", "1"]), ("register", [], [MARKER], ["", "v2", "5", ""]),
             ("claim", reader, KEYS[:1], [OWN, 90000, "s", "0"]), ("claim", reader, KEYS[:1], [OWN, 30000, "s", "2"]),
             ("place", [], [KEYS[0], QUEUE, PROMISES], place),
             ("place", waits, [KEYS[0], QUEUE, PROMISES], place),
             ("place", waits, [KEYS[0], QUEUE, PROMISES], place[:1] + [2000000] + place[2:])]
    refused = 0
    for name, state, keys, values in cases:
        expected, got = run_both(real, model, texts[name], state, keys, values, now_us, is_full=True)
        assert is_same(expected, got), (name, state, keys, values, expected, got)
        refused += "OOM" in str(expected[0])
    assert refused == len(cases) - 5, "it extends readers, and keeps the places of those who wait"


# ---- what it does not know ----


@pytest.mark.parametrize("text, words", [
    ("return redis.call('LPUSHX',KEYS[1],'a')", "does not know: LPUSHX k a"),
    ("return redis.pcall('lpushx',KEYS[1],'a')", "does not know: lpushx k a"),
    ("return redis.call('SET',KEYS[1],'a','EX','1')", "does not know: SET k a EX 1"),
    ("return redis.call('ZRANGE',KEYS[1],0,-1,'REV')", "does not know: ZRANGE k 0 -1 REV"),
    ("return redis.call('GET',{})", "argument 2 of a redis.call is no text"),
    ("while true do end", "a script does not end: 1000000 instructions"),
    ("while true do pcall(function() while true do end end) end", "a script does not end"),
])
def test_the_model_ends_where_it_knows_no_answer(model, text, words):
    """... by the name of what it does not know: an error reply would be an answer."""
    model.process.stdin.write(encode("EVAL", text, 1, "k"))
    model.process.stdin.flush()
    status, said = model.end()
    assert status == 70 and words in said and said.startswith("sim: SEED=")


@pytest.mark.parametrize("text, words", [
    ("return ',dropped='", "has not"),
    ("return ',dropped=' " + 2 * "if d==1 and call('EXISTS',k)==1 then ", "more than once"),
])
def test_a_mutant_changes_one_place_of_its_script(text, words):
    """... that is there once: else it would break nothing, or more than its rule."""
    with Model("--mutant", "reader-deletes").process as process:
        said = process.communicate(encode("EVAL", text, 0), timeout=30)[1].decode()
    assert process.returncode == 70 and words in said


@pytest.mark.parametrize("text", ["return 1 +", "return nil + 1", "x = 1", "return y", "return os.time()",
                                  "error('no')", "return redis.call('GET',KEYS[1]).ok.x"])
def test_a_script_that_fails_is_an_error_on_both(real, model, text):
    for server in real, model:
        assert isinstance(server.pipeline([("EVAL", text, 1, "k")])[0], Exception)


def test_values_become_what_they_do_on_a_real_server(real, model):
    texts = ["return {1,2,nil,3}", "return {1,false,'a',true}", "return false", "return nil", "return 3.99",
             "return -3.99", "return {ok='fine'}", "return redis.error_reply('ERR no')",
             "return redis.status_reply('yes')", "return {{1},{}}",
             "return {err='ERR of mine'}", "return redis.call('GET',KEYS[1])",
             "return redis.pcall('ZSCORE',KEYS[1],'a')",
             "redis.call('ZADD',KEYS[1],1732650000123456,'a') return redis.call('ZSCORE',KEYS[1],'a')",
             "redis.call('ZADD',KEYS[1],0.5,'a') return redis.call('ZSCORE',KEYS[1],'a')",
             "redis.call('SET',KEYS[1],1732650000123456+0.5) return redis.call('GET',KEYS[1])",
             "return redis.pcall('PEXPIRE',KEYS[1],0.5)", "return redis.pcall('ZADD',KEYS[1],'x','a')",
             "redis.call('HSET',KEYS[1],'a','1') return redis.pcall('GET',KEYS[1]).err",
             "redis.call('HSET',KEYS[1],'a','1') return redis.call('GET',KEYS[1])",
             "redis.call('SET',KEYS[1],'a') redis.call('PEXPIRE',KEYS[1],-1) return redis.call('EXISTS',KEYS[1])",
             "return redis.call('SET',KEYS[1],'b','XX','GET')", "return redis.call('SET',KEYS[1],'b','NX','PX','5000')"]
    for text in texts:
        real.command("FLUSHALL")
        model.command("CLEAR")
        replies = [seen(server.pipeline([("EVAL", text, 1, "k")])[0]) for server in (real, model)]
        assert replies[0] == replies[1], text


def test_a_push_counts_those_who_listen(real, model):
    listener = RespConnection(("127.0.0.1", real.sock.getpeername()[1]))
    listener.command("SUBSCRIBE", "c")
    model.command("SUBSCRIBE", "c")
    for channel, count in ("c", 1), ("d", 0):
        assert [server.command("EVAL", "return redis.call('PUBLISH',KEYS[1],'m')", 1, channel)
                for server in (real, model)] == [count, count]
    listener.close()
