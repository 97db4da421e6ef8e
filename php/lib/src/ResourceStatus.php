<?php

declare(strict_types=1);

namespace Redlock;

/** What the nodes say about a resource. */
final class ResourceStatus
{
    /**
     * @param int $status REDLOCK_OK: a majority has no key; REDLOCK_BUSY: it is held or split; else why nobody knows
     * @param array<string, array{status: int, words: string, ttl_ms: string, token: string}> $nodes by name
     */
    public function __construct(
        public readonly string $resource,
        public readonly int $status,
        public readonly string $message,
        public readonly array $nodes,
    ) {
    }

    public function isFree(): bool
    {
        return $this->status === \REDLOCK_OK;
    }

    public function isHeld(): bool
    {
        return $this->status === \REDLOCK_BUSY;
    }
}
