<?php

declare(strict_types=1);

namespace Redlock\Driver;

use Redlock\Native;

/** @internal Ends operations where no further wait is possible. */
final class Leave
{
    /** Releases without waiting for answers; the status is what is known locally. */
    public static function release(Native\Lock $lock): int
    {
        $state = $lock->state();
        $lock->abandon();
        return match ($state) {
            \REDLOCK_STATE_HELD, \REDLOCK_STATE_ADOPTED => \REDLOCK_OK,
            \REDLOCK_STATE_LOST => \REDLOCK_LOST,
            \REDLOCK_STATE_FORKED => \REDLOCK_FORKED,
            default => \REDLOCK_NOT_HELD,
        };
    }

    /** The Fiber is being destroyed, so it can not wait; what a release sends goes on without it. */
    public static function fiber(Native\Client $client, Native\Lock $lock, int $operation, \FiberError $closing): int
    {
        if ($operation !== \REDLOCK_RELEASE) {
            throw $closing;
        }
        $client->process();
        return self::cancelled($lock, $operation);
    }

    /** The waiter was cancelled: a grant that came meanwhile is given back. */
    public static function cancelled(Native\Lock $lock, int $operation): int
    {
        $operation === \REDLOCK_ACQUIRE ? $lock->abandon() : $lock->cancel();
        $lock->ended(); /* it does not wait any more, and is not to be woken */
        return \REDLOCK_CANCELLED;
    }
}
