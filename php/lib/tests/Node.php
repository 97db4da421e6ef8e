<?php

declare(strict_types=1);

namespace Redlock\Tests;

/** A node of the Cluster. */
final class Node
{
    public readonly int $port;

    public function __construct(
        private readonly Cluster $cluster,
        private readonly int $number,
        public readonly string $url,
    ) {
        $this->port = (int) \parse_url($url, \PHP_URL_PORT);
    }

    public function pid(): int
    {
        return $this->cluster->call('pid', $this->number);
    }

    public function kill(): void
    {
        $this->cluster->call('kill', $this->number);
    }

    /** Connections stay, and nothing answers. */
    public function stop(): void
    {
        $this->cluster->call('stop', $this->number);
    }

    public function cont(): void
    {
        $this->cluster->call('cont', $this->number);
    }

    public function command(string ...$words): mixed
    {
        return $this->cluster->call('command', $this->number, ...$words);
    }
}
