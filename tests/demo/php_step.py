"""The step of the demo that shows PHP: blocking, in Fibers, and a lock of PHP that Python is refused and C extends."""
import os
import shutil
import subprocess
from pathlib import Path

from steps import BIN, PYTHON, ROOT, expect, run

EXTENSION = os.environ.get("REDLOCK_PHP_EXTENSION") or str(ROOT / "build/php/demo/php/modules/redlock.so")

LIBRARY = f"""
spl_autoload_register(function ($class) {{
    $path = strtr(substr($class, strlen('Redlock\\\\')), '\\\\', '/') . '.php';
    require '{ROOT}/php/lib/' . (str_starts_with($path, 'Tests/') ? 'tests' . substr($path, 5) : "src/$path");
}});
require '{ROOT}/php/lib/src/extension.php';
"""

BLOCKING = """
$client = Redlock\\Client::connect(nodeTimeoutMs: 2000);
$client->lock('orders:51', ttlMs: 10000)->run(function (Redlock\\Hold $hold) use ($client) {
    echo "held for {$hold->remainingMs()} ms\\n";
    echo 'a second one: ', json_encode($client->lock('orders:51')->tryAcquire()), "\\n";
});
echo 'after run: ', $client->status('orders:51')->isFree() ? 'free' : 'held', "\\n";
"""

FIBERS = """
$loop = new Redlock\\Tests\\StreamSelectLoop();
$client = Redlock\\Client::connect(loop: $loop, retryDelayMs: 5, nodeTimeoutMs: 2000);
$job = fn (int $number) => fn () => $client->lock('shared')->run(function () use ($loop, $number) {
    echo "fiber $number begins, ";
    $loop->delay(10);
    echo "ends\\n";
});
$loop->run([$job(1), $job(2), $job(3)]);
"""

HOLD = """
$hold = Redlock\\Client::connect(nodeTimeoutMs: 2000)->lock('orders:52', ttlMs: 30000)->acquire();
echo $hold->detach();
"""

REFUSED = """
import libredlock
with libredlock.Client(node_timeout=2) as client:
    print("python gets it:", client.lock("orders:52").acquire(blocking=False))
"""


def step(cluster):
    """PHP locks too: run(), three Fibers, and a lock of PHP that Python is refused and C extends and releases"""
    build()
    out = php(cluster, "run() around a function", BLOCKING)
    expect("a second one: false" in out and "after run: free" in out, "run()")
    out = php(cluster, "three Fibers, one lock", FIBERS)
    expect(out.count("begins, fiber") == 0 and out.count("ends") == 3, "the Fibers come one after the other")
    token = php(cluster, "take orders:52 and hand its token over", HOLD).strip()
    out = run(cluster, [PYTHON, "-c", REFUSED], "python  # the same resource")
    expect("gets it: False" in out, "Python is refused")
    run(cluster, [BIN, "extend", "--node-timeout", "2s", "--ttl", "30s", "orders:52", token],
         "redlock extend --node-timeout 2s --ttl 30s orders:52 TOKEN")
    run(cluster, [BIN, "release", "--node-timeout", "2s", "orders:52", token],
         "redlock release --node-timeout 2s orders:52 TOKEN")


def is_current(built):
    sources = [path for folder in ("core", "bindings", "php") for path in (ROOT / folder).rglob("*.[chi]")]
    return built.exists() and built.stat().st_mtime > max(path.stat().st_mtime for path in sources)


def build():
    """The extension, with Debian's SWIG, unless there is one of these sources already."""
    tree = ROOT / "build/php/demo"
    if "REDLOCK_PHP_EXTENSION" in os.environ or is_current(Path(EXTENSION)):
        return
    shutil.rmtree(tree, ignore_errors=True)
    print("    (building the PHP extension in build/php/demo)")
    subprocess.run(["python3", str(ROOT / "bindings/php_generate.py"), "--tree", str(tree)], check=True)
    for command in (["phpize"], ["./configure", "--quiet"], ["make", "-s", "-j2"]):
        done = subprocess.run(command, cwd=tree / "php", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        expect(done.returncode == 0, " ".join(command) + ":\n" + done.stdout[-2000:])


def php(cluster, title, source, more=None):
    return run(cluster, ["php", "-d", f"extension={EXTENSION}", "-r", LIBRARY + source], f"php  # {title}", more)
