<?php

declare(strict_types=1);

namespace Redlock\Testing;

/** Stands in for the nodes: the holders of resources and the ends of their leases, on a clock of its own. */
final class Store
{
    public bool $reachable = true;
    public int $nowMs = 0;
    private int $tokens = 0;

    /** @var array<string, array{token: string, untilMs: int, renewMs: int}> by resource */
    private array $held = [];

    /** A new token, or null: another client holds the resource. */
    public function take(string $resource, int $ttlMs, bool $renews): ?string
    {
        if (isset($this->held[$resource])) {
            return null;
        }
        $token = \sprintf('%040x', ++$this->tokens);
        $this->hold($resource, $token, $ttlMs, $renews);
        return $token;
    }

    public function hold(string $resource, string $token, int $ttlMs, bool $renews): void
    {
        $this->held[$resource] = ['token' => $token, 'untilMs' => $this->nowMs + $ttlMs,
            'renewMs' => $renews ? $ttlMs : 0];
    }

    /** False if it was not this token's. */
    public function free(string $resource, string $token): bool
    {
        $was = $this->tokenOf($resource) === $token;
        if ($was) {
            unset($this->held[$resource]);
        }
        return $was;
    }

    public function lose(string $resource): void
    {
        unset($this->held[$resource]);
    }

    public function releaseAll(): void
    {
        $this->held = [];
    }

    public function tokenOf(string $resource): ?string
    {
        return $this->held[$resource]['token'] ?? null;
    }

    public function leftMs(string $resource): int
    {
        return isset($this->held[$resource]) ? $this->held[$resource]['untilMs'] - $this->nowMs : 0;
    }

    public function isRenewed(string $resource): bool
    {
        return ($this->held[$resource]['renewMs'] ?? 0) > 0;
    }

    public function stopRenewing(string $resource): void
    {
        $this->held[$resource]['renewMs'] = 0;
    }

    /** Renewals need nodes. */
    public function pass(int $ms): void
    {
        $this->nowMs += $ms;
        foreach ($this->held as $resource => ['untilMs' => $untilMs, 'renewMs' => $renewMs]) {
            if ($renewMs > 0 && $this->reachable) {
                $this->held[$resource]['untilMs'] = $this->nowMs + $renewMs;
            } elseif ($untilMs <= $this->nowMs) {
                unset($this->held[$resource]);
            }
        }
    }
}
