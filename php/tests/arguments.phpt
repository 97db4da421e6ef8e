--TEST--
Wrong arguments are reported as PHP's own functions do it
--EXTENSIONS--
redlock
--FILE--
<?php
function attempt(callable $call): void
{
    try {
        var_dump($call());
    } catch (Throwable $e) {
        echo get_class($e), ': ', $e->getMessage(), "\n";
    }
}
class Text
{
    public function __construct(private string $text) {}
    public function __toString(): string { return $this->text . ''; }
}
$node = 'redis://127.0.0.1:1';
$client = new Redlock\Native\Client($node, []);
attempt(fn () => new Redlock\Native\Client());
attempt(fn () => new Redlock\Native\Client([], []));
attempt(fn () => new Redlock\Native\Client("$node\0", []));
attempt(fn () => new Redlock\Native\Client($node, 'ttl_ms'));
attempt(fn () => new Redlock\Native\Client($node, [5]));
attempt(fn () => new Redlock\Native\Client($node, ["ttl_ms\0" => 500]));
attempt(fn () => new Redlock\Native\Client($node, ['ttl_ms' => null]));
attempt(fn () => new Redlock\Native\Client($node, ['ttl_ms' => new stdClass]));
attempt(fn () => new Redlock\Native\Client($node, ['ttl_ms' => 1.5]));
attempt(fn () => new Redlock\Native\Client($node, ['ttl_mz' => 100]));
attempt(fn () => new Redlock\Native\Lock($node, 'x', []));
attempt(fn () => new Redlock\Native\Lock($client, [], []));
attempt(fn () => new Redlock\Native\Lock($client, '', []));
attempt(fn () => $client->get("ttl_ms\0"));
attempt(fn () => $client->get('nothing'));
attempt(fn () => $client->get(new Text('ttl_ms')));
attempt(fn () => $client->get(limitMs: 'ttl_ms'));
attempt(fn () => $client->get(name: 'ttl_ms'));
attempt(fn () => $client->beginDrain(-2));
attempt(fn () => $client->fd(1));
$lock = new Redlock\Native\Lock($client, new Text('stringable'), []);
attempt(fn () => $lock->start('acquire', 0, 0));
attempt(fn () => $lock->start(99, 0, 0));
attempt(fn () => $lock->start(REDLOCK_RELEASE, '0', 0) === REDLOCK_NOT_HELD);
attempt(fn () => $lock->run(REDLOCK_ACQUIRE, 1e30, 0));
attempt(fn () => $lock->fail(REDLOCK_OK));
attempt(fn () => $lock->adopt("a\0"));
attempt(fn () => redlock_status_name('1') . redlock_status_name(99));
attempt(fn () => redlock_status_name());
attempt(fn () => redlock_option_at(1000, REDLOCK_OPTION_NAME));
?>
--EXPECT--
ArgumentCountError: Redlock\Native\Client::__construct() expects exactly 2 arguments, 0 given
TypeError: Redlock\Native\Client::__construct(): Argument #1 ($nodes) must be of type string, array given
Redlock\Exception\InvalidOptionException: nodes must not contain any null bytes
TypeError: Redlock\Native\Client::__construct(): Argument #2 ($options) must be of type array, string given
ValueError: options must have names as keys, as in ['ttl_ms' => 10000]
ValueError: options must have names as keys, as in ['ttl_ms' => 10000]
TypeError: option ttl_ms must be of type int, null given
TypeError: option ttl_ms must be of type int, stdClass given
TypeError: option ttl_ms must be of type int, float given
Redlock\Exception\InvalidOptionException: there is no option "ttl_mz"; did you mean ttl_ms?
TypeError: Redlock\Native\Lock::__construct(): Argument #1 ($client) must be of type Redlock\Native\Client, string given
TypeError: Redlock\Native\Lock::__construct(): Argument #2 ($resource) must be of type string, array given
Redlock\Exception\InvalidOptionException: resource has 0 bytes; allowed: 1 to 536870912
ValueError: Redlock\Native\Client::get(): Argument #1 ($name) must not contain any null bytes
Redlock\Exception\InvalidOptionException: there is no option nothing
string(5) "10000"
Error: Unknown named parameter $limitMs
string(5) "10000"
ValueError: the limit of drain() must be null or at least 0, -2 given
ArgumentCountError: Redlock\Native\Client::fd() expects exactly 0 arguments, 1 given
TypeError: Redlock\Native\Lock::start(): Argument #1 ($operation) must be of type int, string given
ValueError: Redlock\Native\Lock::start(): Argument #1 ($operation) must be one of REDLOCK_ACQUIRE, REDLOCK_EXTEND, REDLOCK_RELEASE, REDLOCK_INSPECT, REDLOCK_EXPIRE, REDLOCK_REMOVE, REDLOCK_WHO, REDLOCK_LIST
bool(true)
TypeError: Redlock\Native\Lock::run(): Argument #2 ($arg) must be of type int, float given
ValueError: Redlock\Native\Lock::fail(): Argument #1 ($status) must be the status of a failure, 0 given
Redlock\Exception\InvalidOptionException: token must not contain any null bytes
string(14) "PENDINGUNKNOWN"
ArgumentCountError: redlock_status_name() expects exactly 1 argument, 0 given
NULL
