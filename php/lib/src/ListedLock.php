<?php

declare(strict_types=1);

namespace Redlock;

/** A lock that the nodes have, or one of its permits, as Client::locks() lists it. */
final class ListedLock
{
    /**
     * @param string $resource its bytes
     * @param string $kind "plain", "shared", "permits", "hash" or "other"; "" if no node has a key
     * @param Verdict $verdict Split: no majority has the same key
     * @param ?string $token of the holder
     * @param ?int $remainingMs until the holder's majority ends unless it is extended; null: no majority has it;
     *     REDLOCK_TTL_ENDLESS: its keys have no TTL
     * @param ?array{client_name: string, host: string, pid: int, held_ms: int, readers?: int} $heldBy the client that
     *     holds it; null: that is not known
     * @param int $waiting how many stand in the queue for it
     * @param ?array{client_name: string, host: string, pid: int, waited_ms: int} $first the first of these
     * @param ?int $slot of a permit
     * @param ?int $permits how many there are
     */
    public function __construct(
        public readonly string $resource,
        public readonly string $kind,
        public readonly Verdict $verdict,
        public readonly ?string $token,
        public readonly ?int $remainingMs,
        public readonly ?array $heldBy,
        public readonly int $waiting,
        public readonly ?array $first = null,
        public readonly ?int $slot = null,
        public readonly ?int $permits = null,
    ) {
    }

    /** @internal */
    public static function ofRow(Native\Lock $list, int $index): self
    {
        $row = \json_decode($list->row($index, \REDLOCK_ROW_JSON), true, flags: \JSON_THROW_ON_ERROR);
        $verdict = Verdict::from($row['verdict']);
        return new self($list->row($index, \REDLOCK_ROW_RESOURCE), $row['kind'], $verdict,
            ($row['holder'] ?? '') ?: null, $row['holder_ttl_ms'] ?? null, $row['held_by'] ?? null, $row['waiting'],
            $row['first'], $row['slot'] ?? null, $row['permits'] ?? null);
    }
}
