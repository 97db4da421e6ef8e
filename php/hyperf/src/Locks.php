<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

use Psr\EventDispatcher\EventDispatcherInterface;
use Psr\Log\LoggerInterface;
use Redlock\Client;
use Redlock\Exception\InvalidOptionException;
use Redlock\Hold;
use Redlock\Lock;
use Redlock\LongLease;
use Redlock\Options;
use Redlock\Testing\MemoryClient;

/** The clusters of config/autoload/redlock.php, and locks on them. One object serves all coroutines of a worker. */
final class Locks
{
    /** @var array<string, Client> */
    private array $clients = [];
    private int $pid = 0;

    /** @var \WeakMap<Hold, ?LongLease> with that of those that are left to their TTL at the end of the process */
    private \WeakMap $holds;

    /**
     * @param array<string, array<string, mixed>> $clusters as config/autoload/redlock.php
     * @param array<string, array<string, mixed>> $pools as config/autoload/redis.php
     */
    public function __construct(
        #[\SensitiveParameter] private readonly array $clusters,
        #[\SensitiveParameter] private readonly array $pools,
        private readonly ?LoggerInterface $logger = null,
        private readonly ?EventDispatcherInterface $dispatcher = null,
    ) {
        $this->holds = new \WeakMap();
    }

    /**
     * The hold of the innermost attribute under which this coroutine runs, so that a method can ask isLost() or
     * remainingMs(); null outside of such methods, and in coroutines that they start.
     */
    public static function current(): ?Hold
    {
        return HeldHere::innermost();
    }

    /**
     * A lock on a resource, or on all of several, not taken yet. What is not given is the cluster's; options grow, so
     * pass them by name.
     *
     * @param string|list<string> $resource
     * @param never ...$unknown
     */
    public function lock(
        string|array $resource,
        string $cluster = 'default',
        /* options of locks: made by ./dev docs */
        ?int $ttlMs = null, ?int $waitMs = null, ?int $outageWaitMs = null, ?int $retryCount = null,
        ?int $retryDelayMs = null, ?float $retryJitter = null, ?bool $queue = null, ?bool $fence = null,
        ?bool $shared = null, ?int $permits = null, ?int $slot = null, ?string $layout = null,
        ?float $driftFactor = null, int|string|null $nodeTimeoutMs = null, int|string|null $minValidityMs = null,
        ?bool $renew = null, ?bool $reentrant = null, ?int $maxExtensions = null, ?int $maxHoldMs = null,
        ?bool $strictRelease = null,
        /* end of options */
        mixed ...$unknown,
    ): Lock {
        $options = \array_diff_key(\get_defined_vars(), ['cluster' => true]); /* not the option of that name */
        return $this->lockOf($this->client($cluster), $resource, Options::given($options, $unknown));
    }

    public function client(string $cluster = 'default'): Client
    {
        return $this->connect("cluster $cluster", $this->config($cluster));
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

    /** @return array<string, Client> those of this worker, by "cluster NAME" and "pools NAMES" */
    public function clients(): array
    {
        return $this->pid === \getmypid() ? $this->clients : [];
    }

    /**
     * @internal The lock of an attribute.
     *
     * @param string|list<string> $resource
     */
    public function lockFor(LockSpec $spec, string|array $resource): Lock
    {
        return $this->lockOf($this->clientOf($spec), $resource, ['reentrant' => true] + $spec->options);
    }

    /** @internal */
    public function clientOf(LockSpec $spec): Client
    {
        return $spec->pools === null ? $this->client($spec->cluster) : $this->clientOfPools($spec->pools);
    }

    /** @internal At the end of the process it is left to its TTL, and not released. */
    public function leaveAtEnd(Hold $hold, LongLease $lease): void
    {
        $this->holds[$hold] = $lease;
    }

    /**
     * @internal Refuses names of pools that are not there, or can not be nodes.
     *
     * @param list<string> $pools
     */
    public function checkPools(array $pools): void
    {
        PoolNodes::resolve(['nodes' => $pools], $this->pools);
    }

    /** @internal Refuses, without asking a node, what can never be locked: options out of range, unknown names. */
    public function check(LockSpec $spec): void
    {
        $client = $this->made($spec->place(),
            $spec->pools === null ? $this->config($spec->cluster) : ['nodes' => $spec->pools],
            static function (#[\SensitiveParameter] array $config): Client {
                $nodes = \array_diff(['nodes' => Client::nodes($config['nodes'])], ['memory://', null]);
                return new MemoryClient($nodes + \array_diff_key($config, ['nodes' => true]));
            });
        $names = static fn (int $number): string => "check $number";
        $resources = \array_map($names, \array_keys((array) $spec->resource));
        $this->lockOf($client, $resources, $spec->options)->tryAcquire();
    }

    /** @internal */
    public function warn(string $words): void
    {
        $this->logger === null ? \error_log("redlock: $words") : $this->logger->warning("redlock: $words");
    }

    /**
     * The worker is at its very end: nothing runs any more. What is still held is left to its TTL, never released under
     * work that a body has begun.
     */
    public function close(): void
    {
        foreach ($this->holds as $hold => $lease) {
            $lease?->leave($hold);
            $hold->isHeld() && $hold->detach();
        }
        $clients = $this->clients();
        $this->clients = [];
        Client::drainAll($clients);
    }

    /**
     * @param string|list<string> $resource
     * @param array<string, bool|int|float|string> $options by the names of the table
     */
    private function lockOf(Client $client, string|array $resource, array $options): Lock
    {
        try {
            $lock = $client->lockFromArray($resource, $options);
        } catch (InvalidOptionException $refused) {
            throw Options::inNames($refused);
        }
        $lock->listHolds($this->holds);
        return $lock;
    }

    /** @return array<string, mixed> */
    private function config(string $cluster): array
    {
        $known = \array_filter($this->clusters, \is_array(...)); /* a file without "return" gives 1 */
        return $known[$cluster] ?? throw new InvalidOptionException("there is no cluster \"$cluster\" in "
            . 'config/autoload/redlock.php; there are: ' . (\implode(', ', \array_keys($known))
            ?: "none: it has to return ['default' => ['nodes' => [...]]]"));
    }

    /** @param array<string, mixed> $config */
    private function connect(string $name, #[\SensitiveParameter] array $config): Client
    {
        if ($this->pid !== \getmypid()) { /* made before the fork of the workers */
            $this->pid = \getmypid();
            $this->clients = [];
        }
        return $this->clients[$name] ??= $this->made($name, $config,
            fn (#[\SensitiveParameter] array $config): Client => Client::fromArray($config, $this->logger,
                dispatcher: $this->dispatcher));
    }

    /**
     * @param array<string, mixed> $config
     * @param \Closure(array<string, mixed>): Client $make of the same with URLs as nodes
     */
    private function made(string $place, #[\SensitiveParameter] array $config, \Closure $make): Client
    {
        try {
            return $make(PoolNodes::resolve($config, $this->pools));
        } catch (InvalidOptionException $wrong) {
            throw new InvalidOptionException("$place: {$wrong->getMessage()}");
        }
    }

    /** @return array<string, mixed> without the passwords of nodes and pools */
    public function __debugInfo(): array
    {
        return ['clusters' => \array_keys($this->clusters), 'clients' => $this->clients];
    }

    public function __destruct()
    {
        foreach ($this->holds as $hold => $lease) {
            $lease?->leave($hold);
        }
    }
}
