<?php

declare(strict_types=1);

namespace Redlock\Testing;

use Redlock\Driver\Driver;
use Redlock\EventLog;
use Redlock\Native;
use Swoole\Coroutine;

/** @internal Operations over a Store, which need no wait. */
final class MemoryDriver extends Driver
{
    /** @var \WeakMap<Handle, true> */
    private \WeakMap $handles;

    public function __construct(Native\Client $nowhere, ?EventLog $events, private readonly Store $store)
    {
        parent::__construct($nowhere, $events);
        $this->handles = new \WeakMap();
    }

    public function owner(): ?\WeakReference
    {
        return \extension_loaded('swoole') && Coroutine::getCid() > 0
            ? \WeakReference::create(Coroutine::getContext()) : parent::owner();
    }

    public function handle(string $resource, array $options, array $more = [], int $group = 0): Handle
    {
        $handle = new Handle($this->client, $this->store, $this->handles, $resource, $options);
        \array_map($handle->add(...), $more);
        return $handle;
    }

    /** What is held is given up, as at the end of a client. */
    public function close(): void
    {
        foreach ($this->handles as $handle => $_) {
            $handle->close();
        }
    }

    public function run(Native\Lock|Handle $lock, int $operation, int $arg): int
    {
        return $lock->run($operation, $arg);
    }

    public function inFlight(): int
    {
        return $this->bodies;
    }
}
