--TEST--
Each status has an exception class with resource and votes
--EXTENSIONS--
redlock
--FILE--
<?php
for ($status = 0; redlock_status_name($status) !== 'UNKNOWN'; $status++) {
    $class = 'Redlock\Exception\\' . str_replace('_', '', ucwords(strtolower(redlock_status_name($status)), '_')) . 'Exception';
    if (!class_exists($class, false)) {
        echo redlock_status_name($status), ": none\n";
        continue;
    }
    $e = new $class('mine', 7);
    echo redlock_status_name($status), ': ', $e->status === $status ? '' : 'wrong status ', get_parent_class($class),
        $e instanceof Redlock\Exception\RedlockThrowable ? '' : ' is no RedlockThrowable', "\n";
}
$lock = new Redlock\Native\Lock(new Redlock\Native\Client('redis://127.0.0.1:1', []), "a\0b", []);
try {
    $lock->fail(REDLOCK_BUSY);
} catch (Redlock\Exception\BusyException $e) {
    var_dump($e->status() === $e->status, $e->resource() === $e->resource, $e->votes() === $e->votes, $e->result());
    var_dump($e->getCode(), $e->status, $e->resource === "a\0b", array_keys($e->votes), $e->getMessage() !== '');
}
try {
    $lock->fail(REDLOCK_INVALID);
} catch (ValueError $e) {
    var_dump(get_class($e), $e->status);
}
try {
    new Redlock\Native\Client('redis://127.0.0.1:1', ['ttl_ms' => 0]);
} catch (Redlock\Exception\RedlockThrowable $e) {
    var_dump($e->status(), $e->resource(), $e->votes(), $e->result());
    $e->result = ['kept'];
    var_dump($e->result());
}
var_dump((new Redlock\Exception\LostException)->result, (new Redlock\Exception\InvalidOptionException)->result);
?>
--EXPECT--
OK: none
PENDING: none
BUSY: Redlock\Exception\RedlockException
NO_QUORUM: Redlock\Exception\RedlockException
TIMED_OUT: Redlock\Exception\RedlockException
CANCELLED: Redlock\Exception\RedlockException
LOST: Redlock\Exception\RedlockException
NOT_HELD: Redlock\Exception\RedlockException
LIMIT: Redlock\Exception\RedlockException
FORKED: Redlock\Exception\RedlockException
IN_FLIGHT: Redlock\Exception\RedlockException
INVALID: none
REFUSED_CONFIG: Redlock\Exception\RedlockException
NO_MEMORY: Redlock\Exception\RedlockException
INTERNAL: Redlock\Exception\RedlockException
UNREACHABLE: none
QUARANTINED: none
bool(true)
bool(true)
bool(true)
NULL
int(2)
int(2)
bool(true)
array(1) {
  [0]=>
  string(11) "127.0.0.1:1"
}
bool(true)
string(40) "Redlock\Exception\InvalidOptionException"
int(11)
int(11)
string(0) ""
array(0) {
}
NULL
array(1) {
  [0]=>
  string(4) "kept"
}
NULL
NULL
