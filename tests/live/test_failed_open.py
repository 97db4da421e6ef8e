"""Clients that can not be opened."""
from helpers import run_python


def test_an_open_that_fails_leaves_nothing_behind():
    """Without descriptors it fails, and may be tried again; its memory does not grow."""
    assert run_python("""
import resource
client = rl.Client("redis://127.0.0.1:1", open=False)
statm = open("/proc/self/statm", "rb", buffering=0)  # not ru_maxrss: that begins with the parent's
resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
def rss():
    return int(os.pread(statm.fileno(), 100, 0).split()[1]) * resource.getpagesize() // 1024
for _ in range(20):
    assert client.open() == INTERNAL, client.message
before = rss()
for _ in range(2000):
    assert client.open() == INTERNAL
print(rss() - before < 4000, "descriptor" in client.message)
""").split() == ["True", "True"]
