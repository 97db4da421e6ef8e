<?php

declare(strict_types=1);

namespace Redlock\Event;

/** By extend() or expire(); renewals in the background are not reported. */
final class Extended extends LockEvent
{
    public function __construct(string $resource, public readonly int $remainingMs)
    {
        parent::__construct($resource);
    }
}
