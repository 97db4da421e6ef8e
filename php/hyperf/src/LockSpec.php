<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

use Redlock\Client;
use Redlock\Lease;

/** @internal What one attribute above a method asks for. */
final class LockSpec
{
    /**
     * @param array<string, mixed> $options by the names of the table, null where the cluster's default counts
     * @param ?list<string> $pools redis pools in place of the cluster
     * @param ?\Closure(\Throwable): \Throwable $translate another exception for a refused lock
     * @param Attempts $attempts of calls into the library, which makes attempts of its own in each
     */
    public function __construct(
        public readonly string $resource,
        public readonly array $options = [],
        public readonly string $cluster = 'default',
        public readonly ?array $pools = null,
        public readonly ?string $onBusy = null,
        public readonly ?\Closure $translate = null,
        public readonly Attempts $attempts = new Attempts(1, 0),
    ) {
    }

    public function client(Locks $locks): Client
    {
        return $this->pools === null ? $locks->client($this->cluster) : $locks->clientOfPools($this->pools);
    }

    /** @return array<string, mixed> what differs from the cluster; a TTL too long for one lease becomes renewed */
    public function optionsFor(Client $client): array
    {
        $options = \array_filter($this->options, static fn (mixed $value): bool => $value !== null);
        if (isset($options['ttl_ms'])) {
            $options = Lease::of($client, $options['ttl_ms'] / 1000)->options() + $options;
        }
        return $options;
    }

    /** Where the lock is: two attributes of one place and resource are one lock. */
    public function place(): string
    {
        return $this->pools === null ? "cluster $this->cluster" : 'pools ' . \implode(',', $this->pools);
    }
}
