<?php

declare(strict_types=1);

namespace Redlock\Driver;

use Redlock\Native;

/** Waits in the call itself, in slices: between two of them PHP runs its signal handlers. */
final class BlockingDriver implements Driver
{
    private const SLICE_MS = 25;

    public function run(Native\Client $client, Native\Lock $lock, int $operation, int $arg): int
    {
        $status = $lock->run($operation, $arg, self::SLICE_MS);
        while ($status === \REDLOCK_PENDING) {
            $status = $lock->wait(self::SLICE_MS);
        }
        return $status;
    }
}
