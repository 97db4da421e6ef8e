<?php

declare(strict_types=1);

namespace Redlock\Driver;

use Redlock\EventLog;
use Redlock\Native;

/** @internal A way to wait for operations of one client. */
abstract class Driver
{
    /** Calls of run() whose bodies have begun, or are about to. */
    public int $bodies = 0;

    public function __construct(protected readonly Native\Client $client, public readonly ?EventLog $events)
    {
    }

    /** Runs one operation to its end: its status. If anything ends it before, nothing stays behind at the nodes. */
    abstract public function run(Native\Lock $lock, int $operation, int $arg): int;

    /** Ends the acquisition that somebody waits for, if any. */
    abstract public function cancel(Native\Lock $lock): void;

    /** @param array<string, mixed> $options of the lock, by the names of the table */
    final public function lock(string $resource, array $options): Native\Lock
    {
        return new Native\Lock($this->client, $resource, $options);
    }

    /** How many calls are under way in Fibers and coroutines. */
    abstract public function inFlight(): int;
}
