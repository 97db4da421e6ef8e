<?php

declare(strict_types=1);

namespace Redlock\Driver;

use Redlock\Event;
use Redlock\Native;
use Redlock\Testing\Handle;

/** @internal Tells the dispatcher what operations have come to. */
final class TellingDriver extends AroundDriver
{
    /** @var \WeakMap<Native\Lock|Handle, int> since when it is held, in nanoseconds */
    private \WeakMap $since;

    public function __construct(Driver $driver)
    {
        parent::__construct($driver);
        $this->since = new \WeakMap();
    }

    public function run(Native\Lock|Handle $lock, int $operation, int $arg): int
    {
        [$began, $state] = [\hrtime(true), $lock->state()];
        $status = $this->driver->run($lock, $operation, $arg);
        $this->events->tell(match ($operation) {
            \REDLOCK_ACQUIRE => $this->acquired($lock, $status, $state, $began),
            \REDLOCK_RELEASE => $this->released($lock, $status, $state),
            \REDLOCK_EXTEND, \REDLOCK_EXPIRE => $status === \REDLOCK_OK
                ? new Event\Extended($lock->resource(), $lock->validityMs()) : null,
            default => null,
        });
        return $status;
    }

    private function acquired(Native\Lock|Handle $lock, int $status, int $stateBefore, int $began): ?Event\LockEvent
    {
        if ($status !== \REDLOCK_OK) {
            return new Event\NotAcquired($lock->resource(), \redlock_status_name($status), $lock->message(),
                self::msSince($began), $lock->attempts());
        }
        if ($stateBefore === \REDLOCK_STATE_HELD) { /* once more, with the option reentrant */
            return null;
        }
        $this->since[$lock] = \hrtime(true);
        return new Event\Acquired($lock->resource(), $lock->token(), $lock->validityMs(), self::msSince($began),
            $lock->attempts(), $lock->fence() ?: null);
    }

    /** A release that is cut short goes on inside the client: what was held has been released. */
    private function released(Native\Lock|Handle $lock, int $status, int $stateBefore): ?Event\LockEvent
    {
        if (\in_array($lock->state(), [\REDLOCK_STATE_HELD, \REDLOCK_STATE_LOST], true)) { /* not the last one */
            return null;
        }
        $heldMs = isset($this->since[$lock]) ? self::msSince($this->since[$lock]) : null;
        unset($this->since[$lock]);
        return $status === \REDLOCK_OK || $status === \REDLOCK_CANCELLED && $stateBefore !== \REDLOCK_STATE_LOST
            ? new Event\Released($lock->resource(), $heldMs) : null;
    }

    private static function msSince(int $at): int
    {
        return \intdiv(\hrtime(true) - $at, 1000000);
    }
}
