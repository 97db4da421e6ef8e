--TEST--
phpinfo and stack traces show no credentials; the version is the library's
--EXTENSIONS--
redlock
--INI--
redlock.nodes=redis://:inisecret@127.0.0.1:1,redis://127.0.0.1:2
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
var_dump(phpversion('redlock') === redlock_version());
var_dump((new Redlock\Native\Client(null, []))->get('nodes'));
?>
--EXPECT--
bool(false)
bool(true)
bool(true)
bool(false)
bool(true)
string(44) "redis://:***@127.0.0.1:1,redis://127.0.0.1:2"
