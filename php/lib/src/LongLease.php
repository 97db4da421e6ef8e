<?php

declare(strict_types=1);

namespace Redlock;

/**
 * @internal A hold that is wanted for a time, and left to its TTL at the end of its process. For more than max_ttl_ms
 * it has a lease of max_ttl_ms that is renewed until the time or the process has ended; a process that ends first says
 * so.
 */
final class LongLease
{
    /** max_hold_ms has no larger number; a lock that is wanted for longer is held without end. */
    private const YEAR_MS = 31_536_000_000;

    /** What clocks may differ by (drift_factor) is no time that is missing. */
    private const DRIFT = 1.1;

    private readonly float $untilMs;

    /** @param float $wantedMs from now on; INF: without end */
    public function __construct(private readonly ClientInterface $client, float $wantedMs)
    {
        $this->untilMs = self::nowMs($client) + $wantedMs;
    }

    /**
     * @param float $heldMs how long the lock has been held
     * @return array{ttl_ms: int, renew: bool, max_hold_ms: int} of a lock that is wanted for $wantedMs from now on
     */
    public static function options(ClientInterface $client, float $wantedMs, float $heldMs = 0.0): array
    {
        $longestMs = (int) $client->option('max_ttl_ms');
        if ($wantedMs <= $longestMs) {
            return ['ttl_ms' => (int) \ceil($wantedMs), 'renew' => false, 'max_hold_ms' => -1];
        }
        $holdMs = \ceil($heldMs + $wantedMs);
        return ['ttl_ms' => $longestMs, 'renew' => true, 'max_hold_ms' => $holdMs > self::YEAR_MS ? -1 : (int) $holdMs];
    }

    /** The hold goes on at the nodes until its TTL. */
    public function leave(HoldInterface $hold): void
    {
        if (!$hold->isHeld()) {
            return;
        }
        $wantedMs = $this->untilMs - self::nowMs($this->client);
        $leftMs = $hold->remainingMs();
        $isCutShort = $hold->isRenewed() && $wantedMs > $leftMs * self::DRIFT;
        $hold->detach();
        $isCutShort && EventLog::warnOf($this->client instanceof Client ? $this->client->events() : null,
            $hold->resource(), \sprintf('ends in %.1f s, but was wanted %s: its process ends or has dropped it, and '
                . 'without one a lock lasts for max_ttl_ms at most', $leftMs / 1000,
                \is_finite($wantedMs) ? \sprintf('for another %.1f s', $wantedMs / 1000) : 'without end'));
    }

    /** By the clock of the client. */
    public static function nowMs(ClientInterface $client): float
    {
        return $client instanceof Testing\MemoryClient ? $client->store->nowMs : \hrtime(true) / 1e6;
    }
}
