<?php
// Through the wrapper that SWIG makes of redlock.h with lock.i: what a PHP binding starts from.
$client = redlock_client_new();
redlock_client_set($client, 'nodes', getenv('REDLOCK_NODES'));
if (redlock_client_open($client) !== REDLOCK_OK) {
    exit(redlock_client_message($client) . "\n");
}
$lock = redlock_lock_new($client, 'orders:42');
foreach (['redlock_lock_acquire' => [$lock, 5000], 'redlock_lock_release' => [$lock]] as $call => $arguments) {
    $status = $call(...$arguments);
    echo redlock_status_name($status), ' ', strlen(redlock_lock_token($lock)), "\n";
}
redlock_lock_free($lock);
redlock_client_free($client);
