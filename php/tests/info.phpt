--TEST--
phpinfo, ini_get and stack traces show no credentials; the version is the library's
--EXTENSIONS--
redlock
--INI--
redlock.nodes="redis://:inisecret@127.0.0.1:1,redis://127.0.0.1:2,redis://u:inisecret/x@y@127.0.0.1:3,inisecret@127.0.0.1:4"
--FILE--
<?php
$client = new Redlock\Native\Client('redis://user:argsecret@127.0.0.1:3', []);
ob_start();
phpinfo(INFO_MODULES);
$info = ob_get_clean();
var_dump(str_contains($info, 'secret'), str_contains($info, '127.0.0.1:3'), str_contains($info, '***@127.0.0.1:1,redis://127.0.0.1:2'));
try {
    new Redlock\Native\Client('redis://user:argsecret@127.0.0.1:3', ['ttl_ms' => 0]);
} catch (ValueError $e) {
    var_dump(str_contains($e . print_r($e->getTrace(), true), PHP_VERSION_ID < 80200 ? 'not there' : 'secret'));
}
var_dump(ini_get('redlock.nodes'), ini_get_all('redlock')['redlock.nodes']['global_value'],
    str_contains(serialize([ini_get_all(), ini_get_all('redlock', false), ini_get_all(null, false)]), 'secret'),
    ini_get_all('redlock', false), ini_get('precision'), ini_get('redlock.nothing'), ini_set('redlock.nodes', 'redis://:inisecret@127.0.0.1:5'),
    ini_get('redlock.nodes'), (new Redlock\Native\Client(null, []))->get('nodes'));
ini_restore('redlock.nodes');
ini_set('redlock.nodes', 'redis://:inisecret@127.0.0.1:1,redis://127.0.0.1:2');
var_dump(phpversion('redlock') === redlock_version());
var_dump((new Redlock\Native\Client(null, []))->get('nodes'));
?>
--EXPECT--
bool(false)
bool(true)
bool(true)
bool(false)
string(83) "redis://***@127.0.0.1:1,redis://127.0.0.1:2,redis://***@127.0.0.1:3,***@127.0.0.1:4"
string(83) "redis://***@127.0.0.1:1,redis://127.0.0.1:2,redis://***@127.0.0.1:3,***@127.0.0.1:4"
bool(false)
array(1) {
  ["redlock.nodes"]=>
  string(83) "redis://***@127.0.0.1:1,redis://127.0.0.1:2,redis://***@127.0.0.1:3,***@127.0.0.1:4"
}
string(2) "14"
bool(false)
string(83) "redis://***@127.0.0.1:1,redis://127.0.0.1:2,redis://***@127.0.0.1:3,***@127.0.0.1:4"
string(23) "redis://***@127.0.0.1:5"
string(24) "redis://:***@127.0.0.1:5"
bool(true)
string(44) "redis://:***@127.0.0.1:1,redis://127.0.0.1:2"
