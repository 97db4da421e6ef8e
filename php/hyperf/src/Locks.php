<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

use Psr\Log\LoggerInterface;
use Redlock\Client;
use Redlock\Exception\InvalidOptionException;
use Redlock\Lock;
use Redlock\Options;

/** The clusters of config/autoload/redlock.php, and locks on them. One object serves all coroutines of a worker. */
final class Locks
{
    /** @var array<string, Client> */
    private array $clients = [];
    private int $pid = 0;
    private bool $leaving = false;

    /** @var array<string, Lock> by token */
    private array $kept = [];

    /** @var \WeakMap<Lock, true> */
    private \WeakMap $locks;

    /**
     * @param array<string, array<string, mixed>> $clusters as config/autoload/redlock.php
     * @param array<string, array<string, mixed>> $pools as config/autoload/redis.php
     */
    public function __construct(
        private readonly array $clusters,
        private readonly array $pools,
        private readonly ?LoggerInterface $logger = null,
    ) {
        $this->locks = new \WeakMap();
    }

    /** A lock on a resource, not taken yet; options by name, as in ttlMs: 10000. */
    public function lock(string $resource, string $cluster = 'default', mixed ...$options): Lock
    {
        return $this->lockOf($this->client($cluster), $resource, Options::fromNamed($options));
    }

    public function client(string $cluster = 'default'): Client
    {
        $config = $this->clusters[$cluster] ?? throw new InvalidOptionException("there is no cluster \"$cluster\" in "
            . 'config/autoload/redlock.php; there are: ' . (\implode(', ', \array_keys($this->clusters)) ?: 'none'));
        return $this->connect("cluster $cluster", $config);
    }

    /**
     * A client of the servers behind Hyperf redis pools.
     *
     * @param list<string> $pools
     */
    public function clientOfPools(array $pools): Client
    {
        return $this->connect('pools ' . \implode(',', $pools), ['nodes' => $pools]);
    }

    /**
     * @internal
     * @param array<string, mixed> $options by the names of the table; in attributes and calls they were camelCase
     */
    public function lockOf(Client $client, string $resource, array $options): Lock
    {
        try {
            $lock = $client->lockFromArray($resource, $options);
        } catch (InvalidOptionException | \TypeError $refused) {
            throw Options::inNames($refused);
        }
        $this->locks[$lock] = true;
        return $lock;
    }

    /** @internal Keeps a lock that is known by its token alone, until take() or its end. */
    public function keep(Lock $lock): void
    {
        $this->kept = \array_filter($this->kept, static fn (Lock $other): bool => $other->isHeld());
        $this->kept[$lock->token()] = $lock;
    }

    /** @internal */
    public function take(string $token): ?Lock
    {
        $lock = $this->kept[$token] ?? null;
        unset($this->kept[$token]);
        return $lock;
    }

    /** The worker wants to exit: closes as soon as no lock is held. What is held belongs to bodies that still run. */
    public function leave(): void
    {
        $this->leaving = true;
        $this->closeIfIdle();
    }

    /** Called when a lock was released, so that a worker that wants to exit is not kept. */
    public function closeIfIdle(): void
    {
        if ($this->leaving && !$this->anyHeld()) {
            $this->close();
        }
    }

    /** The worker ends: what is still held is left to its TTL, never released under a body that may still run. */
    public function close(): void
    {
        foreach ($this->held() as $lock) {
            $lock->detach();
        }
        $clients = $this->pid === \getmypid() ? $this->clients : [];
        $this->clients = [];
        foreach ($clients as $client) {
            $client->drain();
        }
    }

    private function anyHeld(): bool
    {
        return $this->held() !== [];
    }

    /** @return list<Lock> */
    private function held(): array
    {
        $held = [];
        foreach ($this->locks as $lock => $_) {
            $lock->isHeld() && $held[] = $lock;
        }
        return $held;
    }

    /** @param array<string, mixed> $config */
    private function connect(string $name, array $config): Client
    {
        if ($this->pid !== \getmypid()) { /* made before the fork of the workers */
            $this->pid = \getmypid();
            $this->clients = [];
            $this->leaving = false;
        }
        return $this->clients[$name] ??= Client::fromArray(PoolNodes::resolve($config, $this->pools), $this->logger);
    }
}
