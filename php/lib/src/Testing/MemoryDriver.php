<?php

declare(strict_types=1);

namespace Redlock\Testing;

use Redlock\Driver\Driver;
use Redlock\Native;

/** @internal Operations over a Store, which need no wait. */
final class MemoryDriver extends Driver
{
    public function __construct(Native\Client $nowhere, private readonly Store $store)
    {
        parent::__construct($nowhere, null);
    }

    public function handle(string $resource, array $options): Handle
    {
        return new Handle($this->client, $this->store, $resource, $options);
    }

    public function run(Native\Lock|Handle $lock, int $operation, int $arg): int
    {
        return $lock->run($operation, $arg);
    }

    /** Nobody waits. */
    public function cancel(Native\Lock|Handle $lock): void
    {
    }

    public function inFlight(): int
    {
        return $this->bodies;
    }
}
