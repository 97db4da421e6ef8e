<?php

declare(strict_types=1);

namespace Redlock;

use Psr\Log\LoggerInterface;
use Redlock\Driver\BlockingDriver;
use Redlock\Driver\Driver;
use Redlock\Driver\FiberDriver;
use Redlock\Driver\SwooleDriver;
use Redlock\Exception\InvalidOptionException;
use Redlock\Loop\Loop;
use Swoole\Coroutine;

/**
 * A set of nodes with the default options of its locks. Clients of one process (of one thread, in a PHP with threads)
 * with the same nodes and options share their connections, also from one FPM request to the next.
 */
final class Client
{
    private readonly ?EventLog $events;
    private readonly BlockingDriver $blockingDriver;
    private readonly ?FiberDriver $fiberDriver;
    private readonly ?SwooleDriver $swooleDriver;
    private readonly ?Driver $onlyDriver;

    private function __construct(
        private readonly Native\Client $native,
        ?LoggerInterface $logger,
        ?Loop $loop,
    ) {
        $this->events = $logger === null ? null : new EventLog($native, $logger);
        $this->blockingDriver = new BlockingDriver();
        $this->fiberDriver = $loop === null ? null : new FiberDriver($native, $loop);
        $this->swooleDriver = \extension_loaded('swoole') ? SwooleDriver::instance() : null;
        $this->onlyDriver = $loop === null && $this->swooleDriver === null ? $this->blockingDriver : null;
    }

    /**
     * @param string|list<string>|null $nodes URLs, redis://[user:password@]host[:port][/database] or unix://...; null:
     *     redlock.nodes of php.ini, else REDLOCK_NODES of the environment
     * @param ?Loop $loop the event loop for calls made in a Fiber
     * @param mixed ...$options by name, as in ttlMs: 10000, retryDelayMs: 200
     */
    public static function connect(
        #[\SensitiveParameter] string|array|null $nodes = null,
        ?LoggerInterface $logger = null,
        ?Loop $loop = null,
        mixed ...$options,
    ): self {
        $options = Options::fromNamed($options);
        try {
            return new self(new Native\Client(self::join($nodes), $options), $logger, $loop);
        } catch (InvalidOptionException | \TypeError $refused) {
            throw Options::inNames($refused);
        }
    }

    /**
     * From a configuration: 'nodes' beside options by the names of the table ('ttl_ms', 'retry_delay_ms').
     *
     * @param array<string, mixed> $config
     */
    public static function fromArray(
        #[\SensitiveParameter] array $config,
        ?LoggerInterface $logger = null,
        ?Loop $loop = null,
    ): self {
        $nodes = $config['nodes'] ?? null;
        unset($config['nodes']);
        return new self(new Native\Client(self::join($nodes), $config), $logger, $loop);
    }

    /** A lock on a resource (any bytes). It is not taken yet; options by name override the client's. */
    public function lock(string $resource, mixed ...$options): Lock
    {
        $options = Options::fromNamed($options);
        try {
            return $this->lockFromArray($resource, $options);
        } catch (InvalidOptionException | \TypeError $refused) {
            throw Options::inNames($refused);
        }
    }

    /** @param array<string, mixed> $options by the names of the table */
    public function lockFromArray(string $resource, array $options): Lock
    {
        return new Lock($this, new Native\Lock($this->native, $resource, $options), $resource,
            isset($options['renew']));
    }

    /**
     * Takes over a token that another process detached: extend() makes it held, release() deletes it. That nobody else
     * held the lock in between is not promised.
     */
    public function adopt(string $resource, string $token, ?int $ttlMs = null): Lock
    {
        $lock = $this->lock($resource, ...($ttlMs === null ? [] : ['ttlMs' => $ttlMs]));
        $lock->takeUp($token);
        return $lock;
    }

    /** Asks every node who holds the resource, without touching it. */
    public function status(string $resource): ResourceStatus
    {
        $native = new Native\Lock($this->native, $resource, []);
        $status = $this->operate($native, \REDLOCK_INSPECT, 0);
        if (\redlock_status_is($status, \REDLOCK_IS_USAGE) && $status !== \REDLOCK_REFUSED_CONFIG) {
            $native->fail($status);
        }
        return new ResourceStatus($resource, $status, $native->message(), $native->answers());
    }

    /** @return array<string, mixed> options, nodes, what each may vote on, counters */
    public function describe(): array
    {
        return \json_decode($this->native->describe(), true,
            flags: \JSON_THROW_ON_ERROR | \JSON_INVALID_UTF8_SUBSTITUTE);
    }

    /** The value of an option by the name of the table, as text. */
    public function option(string $name): string
    {
        return $this->native->get($name);
    }

    /** Writes what happened since the last call to the logger; every operation does so too. */
    public function logEvents(): void
    {
        $this->events?->write();
    }

    /**
     * Leaves cleanly: releases what is held and waits for the nodes, up to $limitMs (null: exitDrainMs). False if a
     * node did not answer. The next connect() makes a new client.
     */
    public function drain(?int $limitMs = null): bool
    {
        $this->events?->write();
        return $this->native->drain($limitMs ?? -1);
    }

    /** @internal Runs one operation to its end; if anything ends it before, nothing stays behind at the nodes. */
    public function operate(Native\Lock $lock, int $operation, int $arg): int
    {
        $done = false;
        try {
            $status = ($this->onlyDriver ?? $this->driver())->run($this->native, $lock, $operation, $arg);
            $this->events?->write();
            $done = true;
            return $status;
        } finally {
            if (!$done) {
                $operation === \REDLOCK_ACQUIRE ? $lock->abandon() : $lock->cancel();
            }
        }
    }

    /** @internal The error of a body leaves as it is, so what its release came to is only logged. */
    public function warnUnlessReleased(int $status, Native\Lock $lock): void
    {
        if ($status !== \REDLOCK_OK) {
            $this->events?->warn('redlock: {message}',
                ['message' => $lock->message(), 'status' => \redlock_status_name($status)]);
        }
    }

    private function driver(): Driver
    {
        if ($this->swooleDriver !== null && Coroutine::getCid() > 0) {
            return $this->swooleDriver;
        }
        if ($this->fiberDriver !== null && \Fiber::getCurrent() !== null) {
            return $this->fiberDriver;
        }
        return $this->blockingDriver;
    }

    private static function join(#[\SensitiveParameter] mixed $nodes): ?string
    {
        if (\is_array($nodes)) {
            foreach ($nodes as $node) {
                \is_string($node)
                    || throw new \TypeError('nodes must be a list of strings, ' . \get_debug_type($node) . ' given');
            }
            return \implode(',', $nodes);
        }
        if ($nodes !== null && !\is_string($nodes)) {
            throw new \TypeError('nodes must be of type string, array or null, ' . \get_debug_type($nodes) . ' given');
        }
        return $nodes;
    }

    private function __clone()
    {
    }

    public function __serialize(): array
    {
        throw new \LogicException('a Redlock\Client can not be serialised: connect in the other process');
    }
}
