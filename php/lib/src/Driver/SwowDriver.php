<?php

declare(strict_types=1);

namespace Redlock\Driver;

use Redlock\EventLog;
use Redlock\Native;
use Swow\Coroutine;

/** @internal Suspends the coroutine of Swow; one more looks at the client's descriptor while something is pending. */
final class SwowDriver extends SuspendingDriver
{
    /** How often the watching coroutine checks whether any other still waits. */
    private const LOOK_AFTER_S = 1;

    private bool $looks = false;

    /** @var \WeakMap<Native\Lock, true> the awaited locks; a coroutine that is killed runs no finally */
    private \WeakMap $waiting;

    public function __construct(Native\Client $client, ?EventLog $events)
    {
        parent::__construct($client, $events);
        $this->waiting = new \WeakMap();
    }

    public function inFlight(): int
    {
        return \count($this->waiting) + $this->bodies;
    }

    protected function waiter(): mixed
    {
        return Coroutine::getCurrent();
    }

    protected function suspend(mixed $waiter): bool
    {
        Coroutine::yield();
        return true;
    }

    protected function prepare(): void
    {
        if ($this->isNewProcess()) {
            [$this->waiting, $this->looks] = [new \WeakMap(), false];
        }
    }

    protected function isAlone(): bool
    {
        return \count($this->waiting) === 0;
    }

    protected function watch(Native\Lock $lock): void
    {
        $this->waiting[$lock] = true;
        $this->looks || Coroutine::run($this->look(...));
    }

    protected function unwatch(Native\Lock $lock): void
    {
        unset($this->waiting[$lock]);
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
