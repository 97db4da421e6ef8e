<?php

declare(strict_types=1);

namespace Redlock\Tests;

/** Five real nodes of the cluster kit (tests/php/nodes.py), ended with the object. */
final class Cluster
{
    /** @var list<Node> */
    public readonly array $nodes;
    /** @var resource */
    private $process;
    /** @var array<int, resource> */
    private array $pipes = [];
    private int $owner;

    public function __construct()
    {
        $this->owner = \getmypid();
        $kit = \dirname(__DIR__, 3) . '/tests/php/nodes.py';
        $this->process = \proc_open(['python3', $kit], [['pipe', 'r'], ['pipe', 'w']], $this->pipes);
        $nodes = [];
        foreach ($this->read() as $number => $url) {
            $nodes[] = new Node($this, $number, $url);
        }
        $this->nodes = $nodes;
    }

    public function urls(): string
    {
        return \implode(',', \array_column($this->nodes, 'url'));
    }

    /** Running, reachable, configured as at the start, and without keys but for the markers of the guard. */
    public function reset(): void
    {
        $this->call('reset');
    }

    /** Until reset() the nodes are as before their first use. */
    public function makeNew(): void
    {
        $this->call('new');
    }

    /** Says until reset() that no lock is live, for clients of the first nodes alone and of these options. */
    public function bootstrap(int $nodes = 5, int $maxTtlMs = 30_000, string $keyPrefix = ''): void
    {
        $this->call('bootstrap', $nodes, $maxTtlMs, $keyPrefix);
    }

    /** @return array<string, int> key => on how many nodes */
    public function keys(): array
    {
        return $this->call('keys');
    }

    /** Connections with this name over all nodes. */
    public function connections(string $name): int
    {
        return $this->call('connections', $name);
    }

    public function call(string $method, int|string ...$arguments): mixed
    {
        \fwrite($this->pipes[0], \json_encode([$method, ...$arguments], \JSON_THROW_ON_ERROR) . "\n");
        return $this->read();
    }

    private function read(): mixed
    {
        $line = \fgets($this->pipes[1]) ?: throw new \RuntimeException('the nodes have ended');
        $answer = \json_decode($line, true, flags: \JSON_THROW_ON_ERROR);
        return isset($answer['error']) ? throw new \RuntimeException($answer['error']) : $answer['ok'];
    }

    public function __destruct()
    {
        if ($this->owner === \getmypid()) { /* a child of a fork has a copy */
            \fclose($this->pipes[0]);
            \proc_close($this->process);
        }
    }
}
