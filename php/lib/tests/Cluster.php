<?php

declare(strict_types=1);

namespace Redlock\Tests;

/** Real redis-servers on free ports of the loopback, ended with the object. */
final class Cluster
{
    /** @var list<Node> */
    public readonly array $nodes;

    public function __construct(int $count = 5)
    {
        $this->nodes = \array_map(static fn (): Node => new Node(), \range(1, $count));
    }

    public function urls(): string
    {
        return \implode(',', \array_map(static fn (Node $node): string => $node->url(), $this->nodes));
    }

    /** Running, reachable and empty. */
    public function reset(): void
    {
        foreach ($this->nodes as $node) {
            $node->cont();
            $node->isRunning() || $node->restart();
            $node->command('FLUSHALL');
        }
    }

    /** @return array<string, int> key => on how many nodes */
    public function keys(): array
    {
        $counts = [];
        foreach ($this->nodes as $node) {
            foreach ($node->isRunning() ? $node->command('KEYS', '*') : [] as $key) {
                $counts[$key] = ($counts[$key] ?? 0) + 1;
            }
        }
        return $counts;
    }

    /** Connections with this name over all nodes. */
    public function connections(string $name): int
    {
        $count = 0;
        foreach ($this->nodes as $node) {
            $count += \substr_count($node->command('CLIENT', 'LIST'), " name=$name ");
        }
        return $count;
    }

    public function close(): void
    {
        foreach ($this->nodes as $node) {
            $node->end();
        }
    }
}
