<?php

declare(strict_types=1);

namespace Redlock\Event;

/** A renewal was not confirmed in time; the lock is still held. */
final class AtRisk extends LockEvent
{
    /** @param string $resource its first 64 bytes */
    public function __construct(string $resource, public readonly string $detail, public readonly int $atMs)
    {
        parent::__construct($resource);
    }
}
