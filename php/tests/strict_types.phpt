--TEST--
strict_types of the calling file is honoured
--EXTENSIONS--
redlock
--FILE--
<?php
declare(strict_types=1);
try {
    redlock_status_name('1');
} catch (TypeError $e) {
    echo $e->getMessage(), "\n";
}
try {
    new Redlock\Native\Client(5, []);
} catch (TypeError $e) {
    echo $e->getMessage(), "\n";
}
?>
--EXPECT--
redlock_status_name(): Argument #1 ($status) must be of type int, string given
Redlock\Native\Client::__construct(): Argument #1 ($nodes) must be of type string, int given
