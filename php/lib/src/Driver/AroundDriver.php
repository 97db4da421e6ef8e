<?php

declare(strict_types=1);

namespace Redlock\Driver;

use Redlock\Hold;
use Redlock\Native;
use Redlock\Testing\Handle;

/** @internal Leaves to another driver what it does not do itself. */
abstract class AroundDriver extends Driver
{
    public function __construct(protected readonly Driver $driver)
    {
        parent::__construct($driver->client, $driver->events);
    }

    public function owner(): ?\WeakReference
    {
        return $this->driver->owner();
    }

    public function handle(string $resource, array $options, array $more = [], int $group = 0): Native\Lock|Handle
    {
        return $this->driver->handle($resource, $options, $more, $group);
    }

    public function body(Hold $hold, Native\Lock|Handle $lock, callable $body): mixed
    {
        return $this->driver->body($hold, $lock, $body);
    }

    public function inFlight(): int
    {
        return $this->driver->inFlight();
    }
}
