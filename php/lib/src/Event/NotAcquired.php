<?php

declare(strict_types=1);

namespace Redlock\Event;

final class NotAcquired extends LockEvent
{
    /**
     * @param string $status "BUSY": others held it to the end; "NO_QUORUM": too few nodes answered; "CANCELLED", ...
     * @param string $message the same in one line, with every node's answer
     */
    public function __construct(
        string $resource,
        public readonly string $status,
        public readonly string $message,
        public readonly int $waitedMs,
        public readonly int $attempts,
    ) {
        parent::__construct($resource);
    }
}
