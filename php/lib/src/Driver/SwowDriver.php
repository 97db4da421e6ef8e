<?php

declare(strict_types=1);

namespace Redlock\Driver;

use Redlock\EventLog;
use Redlock\Native;
use Swow\Coroutine;

/** @internal Suspends the coroutine of Swow; one more looks at the client's descriptor while something is pending. */
final class SwowDriver extends BlockingDriver
{
    /** How often the one that looks sees that nobody waits any more. */
    private const LOOK_AFTER_S = 1;

    private bool $looks = false;
    private int $generation = 0;

    /** @var \WeakMap<Native\Lock, true> what is waited for; a coroutine that is killed runs no finally */
    private \WeakMap $waiting;

    public function __construct(Native\Client $client, ?EventLog $events)
    {
        parent::__construct($client, $events);
        $this->waiting = new \WeakMap();
    }

    public function run(Native\Lock $lock, int $operation, int $arg): int
    {
        if ($this->generation !== $this->client->generation()) {
            /* the first operation of a process */
            [$this->generation, $this->looks] = [$this->client->generation(), false];
            $this->waiting = new \WeakMap();
        }
        /* alone, nothing is gained by sending with others */
        $flag = \count($this->waiting) === 0 ? \REDLOCK_AT_ONCE : 0;
        $status = $lock->start($operation | $flag, $arg, Coroutine::getCurrent());
        if ($status !== \REDLOCK_OK) {
            return $status;
        }
        $status = \REDLOCK_PENDING;
        $this->waiting[$lock] = true;
        try {
            $this->looks || Coroutine::run($this->look(...));
            while (($status = $lock->ended()) === \REDLOCK_PENDING) {
                Coroutine::yield();
            }
        } finally {
            unset($this->waiting[$lock]);
            if ($status === \REDLOCK_PENDING) {
                Leave::cancelled($lock, $operation);
            }
        }
        if ($this->events !== null) {
            $this->writeEvents($lock, $operation);
        }
        return $status;
    }

    public function inFlight(): int
    {
        return \count($this->waiting) + $this->bodies;
    }

    private function look(): void
    {
        $this->looks = true;
        try {
            $stream = Waiters::open($this->client);
            for ($wake = Waiters::waker($this->client); \count($this->waiting) > 0; $wake()) {
                $read = [$stream];
                $write = $except = null;
                @\stream_select($read, $write, $except, self::LOOK_AFTER_S);
            }
        } finally {
            $this->looks = false;
        }
    }
}
