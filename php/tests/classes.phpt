--TEST--
Handles are final, and only the extension makes them
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
$client = new Redlock\Native\Client('redis://127.0.0.1:1', []);
$lock = new Redlock\Native\Lock($client, 'x', []);
foreach ([$client, $lock] as $handle) {
    $class = new ReflectionClass($handle);
    var_dump($class->isFinal(), $class->getProperties());
    attempt(fn () => clone $handle);
    attempt(fn () => serialize($handle));
    attempt(fn () => unserialize('O:' . strlen($class->name) . ':"' . $class->name . '":0:{}'));
    attempt(fn () => $class->newInstanceWithoutConstructor());
    attempt(fn () => $handle->nothing = 1);
}
attempt(fn () => $client->__construct('redis://127.0.0.1:1', []));
attempt(fn () => $lock->__construct($client, 'y', []));
var_dump(class_exists('redlock', false));
$constants = array_keys(get_defined_constants(true)['redlock']);
var_dump(array_filter($constants, fn ($name) => !str_starts_with($name, 'REDLOCK_')));
?>
--EXPECTF--
bool(true)
array(0) {
}
Error: Trying to clone an uncloneable object of class Redlock\Native\Client
Exception: Serialization of 'Redlock\Native\Client' is not allowed
Exception: Unserialization of 'Redlock\Native\Client' is not allowed
ReflectionException: Class Redlock\Native\Client is an internal class marked as final that cannot be instantiated without invoking its constructor
Error: Cannot create dynamic property Redlock\Native\Client::$nothing
bool(true)
array(0) {
}
Error: Trying to clone an uncloneable object of class Redlock\Native\Lock
Exception: Serialization of 'Redlock\Native\Lock' is not allowed
Exception: Unserialization of 'Redlock\Native\Lock' is not allowed
ReflectionException: Class Redlock\Native\Lock is an internal class marked as final that cannot be instantiated without invoking its constructor
Error: Cannot create dynamic property Redlock\Native\Lock::$nothing
Error: the constructor was called already
Error: the constructor was called already
bool(false)
array(0) {
}
