<?php

declare(strict_types=1);

namespace Redlock;

/** What the nodes say about a resource. */
final class ResourceStatus
{
    /**
     * @param ?string $token of the holder, escaped, 64 bytes at most; null: there is no holder, or its key is no string
     * @param ?int $remainingMs until the holder's majority ends unless it is extended; null: there is no holder;
     *     REDLOCK_TTL_ENDLESS: its keys have no TTL
     * @param array<string, array{status: int, words: string, ttl_ms: string, token: string}> $nodes by name
     * @param ?array{client_name: string, host: string, pid: int, held_ms: int, readers?: int} $heldBy the client that
     *     holds it, as it has told the nodes (option holder_info): for people to read; null: that is not known
     */
    public function __construct(
        public readonly string $resource,
        public readonly Verdict $verdict,
        public readonly string $message,
        public readonly ?string $token,
        public readonly ?int $remainingMs,
        public readonly array $nodes,
        public readonly ?array $heldBy = null,
    ) {
    }

    /** Neither this nor isHeld(): it is unknown, or no token is on a majority. */
    public function isFree(): bool
    {
        return $this->verdict === Verdict::Free;
    }

    /** By one holder, or by several that share it. */
    public function isHeld(): bool
    {
        return $this->verdict === Verdict::Held || $this->verdict === Verdict::Shared;
    }
}
