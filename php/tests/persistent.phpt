--TEST--
Clients with the same nodes and options share a native one
--EXTENSIONS--
redlock
--FILE--
<?php
use Redlock\Native\Client;
$nodes = 'redis://127.0.0.1:1,redis://127.0.0.1:2';
$first = new Client($nodes, ['key_prefix' => 'a', 'holder_info' => true]);
$same = new Client('redis://127.0.0.1:2, redis://127.0.0.1:1', ['holder_info' => 'true', 'key_prefix' => 'a']);
$other = new Client($nodes, ['key_prefix' => 'b', 'holder_info' => true]);
var_dump($first->id() === $same->id(), $first->id() === $other->id(), $first->fd() === $same->fd());
$ofLocks = new Client($nodes, ['ttl_ms' => 1000, 'key_prefix' => 'a', 'renew' => true, 'holder_info' => true]);
var_dump($ofLocks->id() === $first->id(), $ofLocks->get('ttl_ms'));
$id = $first->id();
unset($first, $same, $ofLocks);
$again = new Client($nodes, ['key_prefix' => 'a', 'holder_info' => true]);
var_dump($again->id() === $id);
$again->beginDrain(0);
$again->endDrain();
$new = new Client($nodes, ['key_prefix' => 'a', 'holder_info' => true]);
var_dump($new->id() === $id);
for ($i = 0; $i < 200; $i++) {
    new Client('redis://127.0.0.1:1', ['client_name' => "n$i"]);
}
var_dump(count(glob('/proc/self/fd/*')) < 600);
?>
--EXPECT--
bool(true)
bool(false)
bool(true)
bool(true)
string(5) "10000"
bool(true)
bool(false)
bool(true)
