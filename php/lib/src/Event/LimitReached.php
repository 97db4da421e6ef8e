<?php

declare(strict_types=1);

namespace Redlock\Event;

/** maxHoldMs has been reached: the lease will expire. */
final class LimitReached extends LockEvent
{
    /** @param string $resource its first 64 bytes */
    public function __construct(string $resource, public readonly string $detail, public readonly int $atMs)
    {
        parent::__construct($resource);
    }
}
