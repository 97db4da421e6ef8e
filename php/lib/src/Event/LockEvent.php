<?php

declare(strict_types=1);

namespace Redlock\Event;

/** Something happened to a lock. Listen to this class for all of them. */
abstract class LockEvent
{
    public function __construct(public readonly string $resource)
    {
    }
}
