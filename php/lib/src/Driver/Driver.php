<?php

declare(strict_types=1);

namespace Redlock\Driver;

use Redlock\EventLog;
use Redlock\Hold;
use Redlock\Native;
use Redlock\Testing\Handle;

/** @internal A way to wait for operations of one client. */
abstract class Driver
{
    /** Bodies of run() that have begun. */
    protected int $bodies = 0;

    public function __construct(protected readonly Native\Client $client, public readonly ?EventLog $events)
    {
    }

    /** The Fiber or coroutine that calls, null outside of them; never a number, which may come again. */
    public function owner(): ?\WeakReference
    {
        $fiber = \Fiber::getCurrent();
        return $fiber === null ? null : \WeakReference::create($fiber);
    }

    /** Whether a Fiber or a coroutine has ended. */
    public static function isOver(?\WeakReference $owner): bool
    {
        $fiber = $owner?->get();
        return $owner !== null && ($fiber === null || $fiber instanceof \Fiber && $fiber->isTerminated());
    }

    /** Runs one operation to its end: its status. If anything ends it before, nothing stays behind at the nodes. */
    abstract public function run(Native\Lock|Handle $lock, int $operation, int $arg): int;

    /** Ends the waits of the handles of one group, which are a Lock's. */
    final public function cancel(int $group): void
    {
        $this->client->cancel($group);
    }

    /**
     * @param array<string, mixed> $options of the lock, by the names of the table
     * @param list<string> $more resources
     */
    public function handle(string $resource, array $options, array $more = [], int $group = 0): Native\Lock|Handle
    {
        $handle = new Native\Lock($this->client, $resource, $options, $group);
        foreach ($more as $another) {
            $handle->add($another);
        }
        return $handle;
    }

    /** Calls the body of run(). */
    public function body(Hold $hold, Native\Lock|Handle $lock, callable $body): mixed
    {
        $this->bodies++;
        try {
            return $body($hold);
        } finally {
            $this->bodies--;
        }
    }

    /** How many calls are under way in Fibers and coroutines. */
    abstract public function inFlight(): int;
}
