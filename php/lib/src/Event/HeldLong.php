<?php

declare(strict_types=1);

namespace Redlock\Event;

/** A renewed lock has been held for another hour. */
final class HeldLong extends LockEvent
{
    /** @param string $resource its first 64 bytes */
    public function __construct(string $resource, public readonly string $detail, public readonly int $atMs)
    {
        parent::__construct($resource);
    }
}
