--TEST--
phpinfo and traces show redlock.nodes, but no credentials
--EXTENSIONS--
redlock
--ENV--
REDLOCK_NODES=
--INI--
redlock.nodes="redis://:inisecret@127.0.0.1:1,redis://127.0.0.1:2,redis://u:inisecret@127.0.0.1:3"
--FILE--
<?php
$client = new Redlock\Native\Client('redis://user:argsecret@127.0.0.1:3', []);
ob_start();
phpinfo(INFO_MODULES);
$info = ob_get_clean();
var_dump(str_contains($info, 'secret'), str_contains($info, '127.0.0.1:3'), str_contains($info, '***@127.0.0.1:1,redis://127.0.0.1:2'));
$kept = ini_get('redlock.nodes');
foreach (['redis://:ini,secret@127.0.0.1:4', 'redis://u:inisecret/x@127.0.0.1:4', 'redis://127.0.0.1:4?password=secret'] as $bad) {
    ini_set('redlock.nodes', $bad);
    ob_start();
    phpinfo(INFO_MODULES);
    $info = ob_get_clean();
    var_dump(str_contains($info, 'secret'), str_contains($info, '127.0.0.1:4'), str_contains($info, 'no list of nodes'));
}
ini_set('redlock.nodes', $kept);
try {
    new Redlock\Native\Client('redis://user:argsecret@127.0.0.1:3', ['nodes' => 'redis://:argsecret@a', 'ttl_ms' => 0]);
} catch (ValueError $e) {
    var_dump(str_contains($e . print_r($e->getTrace(), true), PHP_VERSION_ID < 80200 ? 'not there' : 'secret'));
}
$nodes = fn () => (new Redlock\Native\Client(ini_get('redlock.nodes'), []))->get('nodes');
$before = ini_set('redlock.nodes', 'redis://:inisecret@127.0.0.1:5');
var_dump($before, ini_get('redlock.nodes'), $nodes());
ini_set('redlock.nodes', $before);
var_dump(ini_get('redlock.nodes') === $before);
ini_set('redlock.nodes', 'redis://:inisecret@127.0.0.1:1,redis://127.0.0.1:2');
var_dump($nodes());
ini_restore('redlock.nodes');
var_dump(ini_get('redlock.nodes') === $before, ini_get_all('redlock', false)['redlock.nodes'] === $before);
var_dump(phpversion('redlock') === redlock_version());
?>
--EXPECT--
bool(false)
bool(true)
bool(true)
bool(false)
bool(false)
bool(true)
bool(false)
bool(false)
bool(true)
bool(false)
bool(false)
bool(true)
bool(false)
string(82) "redis://:inisecret@127.0.0.1:1,redis://127.0.0.1:2,redis://u:inisecret@127.0.0.1:3"
string(30) "redis://:inisecret@127.0.0.1:5"
string(24) "redis://:***@127.0.0.1:5"
bool(true)
string(44) "redis://:***@127.0.0.1:1,redis://127.0.0.1:2"
bool(true)
bool(true)
bool(true)
