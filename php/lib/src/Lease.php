<?php

declare(strict_types=1);

namespace Redlock;


/** @internal A TTL in seconds as options of a lock: renewed where it is longer than one lease may be. */
final class Lease
{
    private function __construct(public readonly int $ttlMs, public readonly int $holdMs)
    {
    }

    public static function of(Client $client, float $ttl): self
    {
        $wantedMs = (int) \round($ttl * 1000);
        return new self(\min($wantedMs, (int) $client->option('max_ttl_ms')), $wantedMs);
    }

    public function isRenewed(): bool
    {
        return $this->holdMs > $this->ttlMs;
    }

    /** @return array<string, int|bool> */
    public function options(): array
    {
        return $this->isRenewed()
            ? ['ttl_ms' => $this->ttlMs, 'renew' => true, 'max_hold_ms' => $this->holdMs, 'max_extensions' => -1]
            : ['ttl_ms' => $this->ttlMs, 'max_extensions' => -1];
    }
}
