<?php

declare(strict_types=1);

namespace Redlock\Event;

/** A held lock was lost. Reported by the client's next operation or logEvents(). */
final class Lost extends LockEvent
{
    /**
     * @param string $resource its first 64 bytes
     * @param string $reason "expired", "gone", "restarted", "refused", "limit" or "clock"
     * @param int $atMs when, in milliseconds since 1970
     */
    public function __construct(
        string $resource,
        public readonly string $reason,
        public readonly string $detail,
        public readonly int $atMs,
    ) {
        parent::__construct($resource);
    }
}
