<?php

declare(strict_types=1);

namespace Redlock\Testing;

use Redlock\ListedLock;
use Redlock\Verdict;

/** Stands in for the nodes: the holders of resources and the ends of their leases, on a clock of its own. */
final class Store
{
    public bool $reachable = true;
    public int $nowMs = 0;
    private int $tokens = 0;

    /** @internal @var array<string, true> tokens whose lease has ended by the clock */
    public array $lapsed = [];

    /**
     * @var array<string, array{resources: list<string>, untilMs: int, renewMs: int, isShared: bool, slot: int,
     *     permits: int, kind: string, limitMs: float}>
     */
    private array $held = [];

    /** @internal That of all clients of `memory://`. */
    public static function ofProcess(): self
    {
        static $one = null;
        return $one ??= new self();
    }

    /**
     * A new token, or null: others hold one of the resources, or all permits. A lock without permits is the first one.
     *
     * @param list<string> $resources
     * @param float $longestMs for how long it is renewed
     * @param int $slot of the permit that is wanted; -1: any
     */
    public function take(
        array $resources,
        int $ttlMs,
        bool $renews,
        float $longestMs,
        bool $isShared,
        int $permits,
        int $slot,
        bool $isHash = false,
    ): ?string {
        $taken = [];
        foreach ($this->holders($resources) as $token) {
            $other = $this->held[$token];
            $isShared && $other['isShared'] || $taken[] = $other['slot'];
        }
        $free = \array_diff($slot < 0 ? \range(0, $permits - 1) : [$slot], $taken);
        if ($free === []) {
            return null;
        }
        $token = \sprintf('%040x', ++$this->tokens);
        $this->held[$token] = ['resources' => $resources, 'untilMs' => 0, 'renewMs' => 0, 'isShared' => $isShared,
            'slot' => \min($free), 'permits' => $permits, 'kind' => $isHash ? 'hash' : 'plain', 'limitMs' => \INF];
        $this->hold($token, $ttlMs, $renews, $this->nowMs + $longestMs, $isShared);
        return $token;
    }

    /** @param float $limitMs until when it is renewed */
    public function hold(string $token, int $ttlMs, bool $renews, float $limitMs, bool $isShared): void
    {
        $this->held[$token] = ['untilMs' => $this->nowMs + $ttlMs, 'renewMs' => $renews ? $ttlMs : 0,
            'limitMs' => $limitMs, 'isShared' => $isShared] + $this->held[$token];
    }

    public function free(string $token): void
    {
        unset($this->held[$token]);
    }

    public function lose(string $resource): void
    {
        \array_map($this->free(...), $this->holders([$resource]));
    }

    /** @return array{resources: list<string>, untilMs: int, isShared: bool, slot: int, ...}|null */
    public function find(string $token): ?array
    {
        return $this->held[$token] ?? null;
    }

    /**
     * @param list<string> $resources
     * @return list<string> tokens of those that hold one of them
     */
    public function holders(array $resources): array
    {
        return \array_keys(\array_filter($this->held,
            static fn (array $held): bool => \array_intersect($held['resources'], $resources) !== []));
    }

    /** @return list<ListedLock> in the order of their names; of readers the one that holds it longest */
    public function listed(): array
    {
        $rows = [];
        \uasort($this->held, static fn (array $one, array $other): int => $one['untilMs'] <=> $other['untilMs']);
        foreach ($this->held as $token => $held) {
            foreach ($held['resources'] as $resource) {
                $permit = $held['permits'] > 1 ? ['slot' => $held['slot'], 'permits' => $held['permits']] : [];
                [$kind, $verdict] = $held['isShared'] ? ['shared', Verdict::Shared]
                    : [$permit === [] ? $held['kind'] : 'permits', Verdict::Held];
                $rows["$resource\0$held[slot]"] = new ListedLock($resource, $kind, $verdict, $token,
                    $held['untilMs'] - $this->nowMs, null, 0, ...$permit);
            }
        }
        \ksort($rows, \SORT_STRING);
        return \array_values($rows);
    }

    /**
     * When the next of them ends by itself; null: none does, as they are renewed.
     *
     * @param list<string> $resources
     */
    public function nextEndMs(array $resources): ?int
    {
        $held = \array_map(fn (string $token): array => $this->held[$token], $this->holders($resources));
        $ends = \array_map(static fn (array $one): float => $one['renewMs'] === 0 ? $one['untilMs'] : $one['limitMs'],
            $held);
        return $ends === [] || \is_infinite(\min($ends)) ? null : (int) \min($ends) - $this->nowMs;
    }

    public function stopRenewing(string $token): void
    {
        isset($this->held[$token]) && $this->held[$token]['renewMs'] = 0;
    }

    /** Renewals need nodes. */
    public function pass(int $ms): void
    {
        $this->nowMs += $ms;
        foreach ($this->held as $token => ['untilMs' => $untilMs, 'renewMs' => $renewMs, 'limitMs' => $limitMs]) {
            if ($renewMs > 0 && $this->reachable && $limitMs > $this->nowMs) {
                $this->held[$token]['untilMs'] = (int) \min($this->nowMs + $renewMs, $limitMs);
            } elseif ($untilMs <= $this->nowMs) {
                $this->lapsed[$token] = true;
                $this->free($token);
            }
        }
    }
}
