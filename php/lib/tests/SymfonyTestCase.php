<?php

declare(strict_types=1);

namespace Redlock\Tests;

use Redlock\Symfony\RedlockStore;
use Symfony\Component\Lock\LockFactory;

abstract class SymfonyTestCase extends NodesTestCase
{
    /** The guard's number is for those who ask for long leases. */
    protected const LONG = ['nodeTimeoutMs' => 'auto', 'maxTtlMs' => 86_400_000];

    protected function setUp(): void
    {
        parent::setUp();
        self::cluster()->bootstrap(maxTtlMs: self::LONG['maxTtlMs']);
    }

    protected function store(float $ttl = 60.0, mixed ...$options): RedlockStore
    {
        return new RedlockStore($this->client(...$options + self::LONG), $ttl);
    }

    protected function factory(mixed ...$options): LockFactory
    {
        return new LockFactory($this->store(300.0, ...$options));
    }

    /** @return array<int, int> what is left of the key on each node that has it */
    protected static function leftMs(string $resource): array
    {
        $left = \array_map(static fn (Node $node): int => $node->command('PTTL', $resource), self::cluster()->nodes);
        return \array_filter($left, static fn (int $ms): bool => $ms >= 0);
    }

    protected static function assertLeftMs(int $least, int $most, string $resource, int $nodes = 3): void
    {
        $left = [];
        Wait::until(static function () use (&$left, $least, $resource, $nodes): bool {
            $left = self::leftMs($resource);
            return \count($left) >= $nodes && \min($left) >= $least;
        }, "the slowest node to give the key $least ms"); // a call returns once a majority has answered
        self::assertLessThanOrEqual($most, \max($left));
    }
}
