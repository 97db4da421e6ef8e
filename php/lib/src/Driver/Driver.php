<?php

declare(strict_types=1);

namespace Redlock\Driver;

use Redlock\Native;

/** How the caller waits for an operation. */
interface Driver
{
    /** Runs one operation to its end; returns its status, REDLOCK_CANCELLED when the waiter was cancelled. */
    public function run(Native\Client $client, Native\Lock $lock, int $operation, int $arg): int;
}
