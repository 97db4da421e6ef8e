--TEST--
A lock goes through its calls on real nodes; nothing grows
--EXTENSIONS--
redlock
--SKIPIF--
<?php if (!getenv('REDLOCK_NODES')) die('skip REDLOCK_NODES names no nodes'); ?>
--FILE--
<?php
use Redlock\Native\{Client, Lock};
$client = new Client(getenv('REDLOCK_NODES'), ['connect_timeout_ms' => 20000]);
$options = ['ttl_ms' => 20000, 'node_timeout_ms' => 2000];
$lock = new Lock($client, "phpt\0cycle", $options);
echo redlock_status_name($lock->run(REDLOCK_ACQUIRE, 0, 60000)), ' ', $lock->state(), ' ', strlen($lock->token()), ' ', $lock->validityMs() > 10000 ? 'valid' : 'short', "\n";
$other = new Lock($client, "phpt\0cycle", $options);
echo redlock_status_name($other->run(REDLOCK_ACQUIRE, 0, 60000)), ' ', $other->message() !== '' ? 'says why' : '', "\n";
echo redlock_status_name($other->run(REDLOCK_INSPECT, 0, 60000)), "\n";
echo redlock_status_name($lock->run(REDLOCK_EXTEND, 30000, 60000)), ' ', $lock->validityMs() > 20000 ? 'longer' : 'not', "\n";
$token = $lock->token();
echo redlock_status_name($lock->detach()), ' ', $lock->state(), "\n";
echo redlock_status_name($other->adopt($token)), ' ', $other->state(), "\n";
echo redlock_status_name($other->run(REDLOCK_RELEASE, 0, 60000)), "\n";
$client->process();
while ($client->next() !== null);
echo redlock_status_name($other->start(REDLOCK_ACQUIRE | REDLOCK_AT_ONCE, 0, 7)), ' ', redlock_status_name($other->status()), "\n";
$stream = fopen('php://fd/' . $client->fd(), 'r');
$ended = function () use ($client, $stream): ?int {
    do {
        $read = [$stream];
        $none = null;
        stream_select($read, $none, $none, 5);
    } while (($tag = $client->advance()) === null);
    return $tag;
};
echo $ended(), ' ', redlock_status_name($other->status()), "\n";
$other->abandon();
echo $other->state(), "\n";
echo redlock_status_name($other->start(REDLOCK_ACQUIRE | REDLOCK_AT_ONCE, 60000, 8)), "\n";
echo $ended(), ' ', redlock_status_name($other->status()), "\n";
$other->run(REDLOCK_RELEASE, 0, 60000);

$cycles = getenv('USE_ZEND_ALLOC') === '0' ? 200 : 5000;
$memory = memory_get_usage();
for ($i = 0; $i < $cycles; $i++) {
    $x = new Lock($client, 'k', $options);
    $x->run(REDLOCK_ACQUIRE, 0, 60000);
    $x->run(REDLOCK_RELEASE, 0, 60000);
    $x->message();
    $x->answers();
    try {
        $x->fail(REDLOCK_BUSY);
    } catch (Exception) {
    }
}
unset($x);
echo memory_get_usage() - $memory < 500 ? 'no growth' : 'grows by ' . (memory_get_usage() - $memory), "\n";
?>
--EXPECT--
OK 1 40 valid
BUSY says why
BUSY
OK longer
OK 0
OK 3
OK
OK PENDING
7 OK
0
OK
8 OK
no growth
