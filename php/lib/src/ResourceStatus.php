<?php

declare(strict_types=1);

namespace Redlock;

/** What the nodes say about a resource. */
final class ResourceStatus
{
    /**
     * @param string $resource of several, the first
     * @param Verdict $verdict of permits, Free: one more may hold the resource; of several, Held: one of them is
     * @param ?string $token of the holder, escaped, 64 bytes at most; null: there is no holder, or its key is no
     *     string, or there are parts
     * @param ?int $remainingMs until the holder's majority ends unless it is extended; null: there is no holder, or
     *     there are parts; REDLOCK_TTL_ENDLESS: its keys have no TTL
     * @param array<string, array{status: int, words: string, ttl_ms: string, token: string}> $nodes by name; none of
     *     what has parts
     * @param ?array{client_name: string, host: string, pid: int, held_ms: int, readers?: int} $heldBy the client that
     *     holds it, as it has told the nodes (option holder_info): for people to read; null: that is not known
     * @param list<self> $parts each of the permits, by its slot, or of several resources; else none
     */
    public function __construct(
        public readonly string $resource,
        public readonly Verdict $verdict,
        public readonly string $message,
        public readonly ?string $token,
        public readonly ?int $remainingMs,
        public readonly array $nodes,
        public readonly ?array $heldBy = null,
        public readonly array $parts = [],
    ) {
    }

    /**
     * @internal
     * @param non-empty-list<self> $parts
     */
    public static function ofParts(array $parts, bool $arePermits): self
    {
        $order = [Verdict::Free, Verdict::Unknown, Verdict::Split, Verdict::Shared, Verdict::Held];
        $found = \array_column($parts, 'verdict');
        $verdicts = \array_values(\array_filter($order,
            static fn (Verdict $one): bool => \in_array($one, $found, true)));
        $held = \count(\array_filter($parts, static fn (self $part): bool => $part->isHeld()));
        $unknown = \count($parts) - $held - \count(\array_keys($found, Verdict::Free, true));
        $resource = $parts[0]->resource;
        return new self($resource, $arePermits ? $verdicts[0] : \end($verdicts), \sprintf('"%s": %d of %d %s held%s',
            $resource, $held, \count($parts), $arePermits ? 'permits' : 'resources',
            $unknown === 0 ? '' : ", $unknown not known"), null, null, [], null, $parts);
    }

    /**
     * @internal
     * @param array{client_name: string, host: string, pid: int, held_ms: int, readers?: int} $heldBy as above
     */
    public static function words(array $heldBy): string
    {
        if (isset($heldBy['readers'])) {
            return "$heldBy[readers] reader" . ($heldBy['readers'] > 1 ? 's' : '');
        }
        [$name, $host] = \array_map(static fn (string $text): string => \addcslashes($text, "\0..\37\177..\377"),
            [$heldBy['client_name'] ?: 'a client', $heldBy['host']]);
        return \sprintf('%s (pid %d on %s) for %.1F s', $name, $heldBy['pid'], $host, $heldBy['held_ms'] / 1000);
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
