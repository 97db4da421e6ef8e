<?php

declare(strict_types=1);

namespace Redlock\Driver;

use Redlock\EventLog;
use Redlock\Native;
use Swoole\Coroutine;

/** @internal Suspends the coroutine and never the worker. */
final class SwooleDriver extends BlockingDriver
{
    private readonly SwooleWatch $watch;
    private int $pending = 0;

    public function __construct(Native\Client $client, ?EventLog $events, ?BlockingDriver $fibers)
    {
        parent::__construct($client, $events, $fibers);
        $this->watch = SwooleWatch::of($client);
    }

    public function run(Native\Lock $lock, int $operation, int $arg): int
    {
        $coroutine = Coroutine::getCid();
        if ($coroutine <= 0) {
            return parent::run($lock, $operation, $arg);
        }
        if ($operation === \REDLOCK_RELEASE && Coroutine::isCanceled()) {
            return Leave::release($lock); /* a cancelled coroutine is to end, not to wait */
        }
        $watch = $this->watch;
        if ($watch->generation !== $this->client->generation()) {
            $watch->begin($this->client->generation());
        }
        $flag = $watch->pending === 0 ? \REDLOCK_AT_ONCE : 0; /* alone, nothing is gained by sending with others */
        $status = $lock->start($operation | $flag, $arg, $coroutine);
        if ($status !== \REDLOCK_OK) {
            return $status;
        }
        $status = \REDLOCK_PENDING;
        $this->pending++;
        $watch->pending++;
        $watch->begun++;
        try {
            do {
                $goesOn = Coroutine::suspend();
            } while ($goesOn && ($status = $lock->ended()) === \REDLOCK_PENDING);
        } finally {
            $this->pending--;
            $watch->pending--;
            if ($status === \REDLOCK_PENDING) {
                $status = Leave::cancelled($lock, $operation);
            }
        }
        if ($this->events !== null) {
            $this->writeEvents($lock, $operation);
        }
        return $status;
    }

    public function inFlight(): int
    {
        return $this->pending + parent::inFlight();
    }
}
