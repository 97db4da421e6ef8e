--TEST--
The same nodes and options, in any order, are the same native client of the process
--EXTENSIONS--
redlock
--FILE--
<?php
use Redlock\Native\Client;
$first = new Client('redis://127.0.0.1:1,redis://127.0.0.1:2', ['ttl_ms' => 1000, 'renew' => true]);
$same = new Client('redis://127.0.0.1:2, redis://127.0.0.1:1', ['renew' => true, 'ttl_ms' => '1000']);
$other = new Client('redis://127.0.0.1:1,redis://127.0.0.1:2', ['ttl_ms' => 1001, 'renew' => true]);
var_dump($first->id() === $same->id(), $first->id() === $other->id(), $first->fd() === $same->fd());
$id = $first->id();
unset($first, $same);
$again = new Client('redis://127.0.0.1:1,redis://127.0.0.1:2', ['ttl_ms' => 1000, 'renew' => true]);
var_dump($again->id() === $id);
$again->drain(0);
$new = new Client('redis://127.0.0.1:1,redis://127.0.0.1:2', ['ttl_ms' => 1000, 'renew' => true]);
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
bool(false)
bool(true)
