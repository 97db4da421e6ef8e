<?php

declare(strict_types=1);

namespace Redlock;

use Psr\EventDispatcher\EventDispatcherInterface;
use Psr\Log\LoggerInterface;
use Redlock\Driver\BlockingDriver;
use Redlock\Driver\Driver;
use Redlock\Driver\SwooleDriver;
use Redlock\Driver\SwowDriver;
use Redlock\Driver\TellingDriver;
use Redlock\Exception\InvalidOptionException;
use Redlock\Loop\Loop;
use Redlock\Testing\MemoryClient;
use Redlock\Testing\Store;

/**
 * A set of nodes with the default options of its locks. Clients of one process (of one thread, in a PHP with threads)
 * share their connections, also from one FPM request to the next, if they have the same nodes and the same options that
 * are no defaults of locks. Only Testing\MemoryClient extends it.
 */
class Client implements ClientInterface
{
    use MakesLocks;

    /**
     * @internal
     * @param array<string, mixed> $defaults of its locks, by the names of the table
     */
    protected function __construct(
        private readonly Native\Client $native,
        private readonly array $defaults,
        private readonly ?EventLog $events,
        private Driver $driver,
    ) {
        if ($events?->dispatcher !== null) {
            $this->driver = new TellingDriver($driver);
        }
    }

    /**
     * The options are those of docs/options.md, by name: ttlMs: 10000, retryDelayMs: 200; null is the default.
     *
     * @param string|list<string>|null $nodes URLs, `redis://[user:password@]host[:port][/database]` or `unix://...`;
     *     null: redlock.nodes of php.ini, else REDLOCK_NODES of the environment. `memory://` makes a
     *     Testing\MemoryClient, and all of this process that are made so exclude each other
     * @param ?Loop $loop the event loop for calls made in a Fiber; Revolt's is found without
     * @param ?EventDispatcherInterface $dispatcher is given what happens as objects of Redlock\Event
     * @param never ...$unknown
     */
    public static function connect(
        #[\SensitiveParameter] string|array|null $nodes = null,
        ?LoggerInterface $logger = null,
        ?Loop $loop = null,
        ?EventDispatcherInterface $dispatcher = null,
        /* options: made by ./dev docs */
        ?int $ttlMs = null, ?int $maxTtlMs = null, ?int $waitMs = null, ?int $outageWaitMs = null,
        ?int $retryCount = null, ?int $retryDelayMs = null, ?float $retryJitter = null, ?bool $queue = null,
        ?string $wake = null, ?string $guard = null, ?string $cluster = null, ?bool $fence = null, ?bool $shared = null,
        ?int $permits = null, ?int $slot = null, ?string $layout = null, ?float $driftFactor = null,
        int|string|null $nodeTimeoutMs = null, ?int $connectTimeoutMs = null, int|string|null $minValidityMs = null,
        ?bool $renew = null, ?bool $reentrant = null, ?int $maxExtensions = null, ?int $maxHoldMs = null,
        ?string $keyPrefix = null, ?bool $strictRelease = null, ?string $clientName = null, ?bool $holderInfo = null,
        ?string $userFile = null, ?string $passwordFile = null, ?string $tlsCaFile = null, ?string $tlsCaPath = null,
        ?string $tlsCertFile = null, ?string $tlsKeyFile = null, ?string $tlsServerName = null, ?bool $tlsVerify = null,
        ?int $exitDrainMs = null,
        /* end of options */
        mixed ...$unknown,
    ): self {
        $options = Options::given(\get_defined_vars(), $unknown);
        try {
            return self::open($nodes, $options, $logger, $loop, $dispatcher);
        } catch (InvalidOptionException $refused) {
            throw Options::inNames($refused);
        }
    }

    /**
     * From a configuration: 'nodes' beside options by the names of the table ('ttl_ms' => 10000), or times with a unit
     * ('ttl' => '10s').
     *
     * @param array<string, mixed> $config
     */
    public static function fromArray(
        #[\SensitiveParameter] array $config,
        ?LoggerInterface $logger = null,
        ?Loop $loop = null,
        ?EventDispatcherInterface $dispatcher = null,
    ): self {
        $nodes = $config['nodes'] ?? null;
        unset($config['nodes']);
        return self::open($nodes, Options::fromArray($config), $logger, $loop, $dispatcher);
    }

    /**
     * Several clients leave at the same time, each as by drain(). False if a node of one of them did not answer.
     *
     * @param iterable<self> $clients
     */
    public static function drainAll(iterable $clients, ?int $limitMs = null): bool
    {
        $leaving = [];
        foreach ($clients as $client) {
            $client->logEvents();
            $client->beginDrain($limitMs ?? -1);
            $leaving[] = $client;
        }
        return !\in_array(false, \array_map(static fn (self $client): bool => $client->endDrain(), $leaving));
    }

    /** @internal */
    protected function beginDrain(int $limitMs): void
    {
        $this->native->beginDrain($limitMs);
    }

    /** @internal */
    protected function endDrain(): bool
    {
        return $this->native->endDrain();
    }

    /** @param array<string, mixed> $options by the names of the table */
    private function make(string|array $resource, array $options): Lock
    {
        return new Lock($this->driver, $resource, $options, $this->defaults);
    }

    public function locks(string $pattern = '*', ?int $limitMs = null): Listing
    {
        $pattern !== '' || throw new InvalidOptionException('the pattern of locks() is empty; "*" lists all');
        $list = $this->driver->handle($pattern, []);
        $status = $this->driver->run($list, \REDLOCK_LIST, $limitMs ?? -1);
        \in_array($status, [\REDLOCK_OK, \REDLOCK_TIMED_OUT], true) || $list->fail($status);
        $count = $list->listed(\REDLOCK_LISTED_ROWS);
        $rows = \array_map(static fn (int $index): ListedLock => ListedLock::ofRow($list, $index),
            $count > 0 ? \range(0, $count - 1) : []);
        return new Listing($rows, $list->listed(\REDLOCK_LISTED_MORE) === 1);
    }

    public function check(): array
    {
        $this->driver->run($this->driver->handle('check', []), \REDLOCK_INSPECT, 0);
        return $this->describe();
    }

    /**
     * Says that no lock is live, so that new nodes, or nodes that may have lost their keys, need not wait before they
     * vote (docs/guard.md). Calling it again does nothing where all nodes vote. Blocks for up to twice
     * connectTimeoutMs, also in coroutines: it is for deployments.
     *
     * @param bool $new only for a new deployment: all nodes answer, and none has a marker
     * @param bool $yes whatever is new or quarantined: no lock is live
     * @param bool $replace markers of another maxTtlMs, list or version are rewritten, and no quarantine ends
     * @return list<array{node: string, did: string, votes: bool, max_ttl_ms: ?int, found: string}> for each node what
     *     was done, "nothing", "registered" or "replaced", and what was found
     * @throws Exception\RefusedConfigException nodes were left alone; its result() has the list. New and quarantined
     *     nodes count only with $yes; with $new a majority that votes, or will, is enough
     * @throws Exception\NoQuorumException nodes did not answer, with $new a majority; its result() has the list
     * @throws Exception\RedlockException|Exception\InvalidOptionException others of the table in docs/php.md
     */
    public function bootstrap(bool $new = false, bool $yes = false, bool $replace = false): array
    {
        if ($new === ($yes || $replace)) {
            throw new InvalidOptionException('bootstrap() takes new: true for new nodes, or yes: true if no lock is '
                . 'live, or replace: true to rewrite markers');
        }
        return $this->native->bootstrap(match (true) {
            $new => \REDLOCK_BOOTSTRAP_NEW,
            $replace => \REDLOCK_BOOTSTRAP_REPLACE,
            default => \REDLOCK_BOOTSTRAP_YES,
        });
    }

    public function describe(): array
    {
        $about = \json_decode($this->native->describe(), true,
            flags: \JSON_THROW_ON_ERROR | \JSON_INVALID_UTF8_SUBSTITUTE);
        foreach (\array_keys($this->defaults) as $name) {
            $about['options'][$name] = Options::typed($this->option($name), $about['options'][$name]);
        }
        return $about;
    }

    public function metrics(): string
    {
        return $this->native->metrics();
    }

    public function option(string $name): string
    {
        return isset($this->defaults[$name])
            ? (new Native\Lock($this->native, 'option', $this->defaults))->get($name)
            : $this->native->get($name);
    }

    public function inFlight(): int
    {
        return $this->driver->inFlight();
    }

    /** Clients with the same number share their connections, and so the figures of metrics() and describe(). */
    public function connectionsId(): int
    {
        return $this->native->id();
    }

    public function logEvents(): void
    {
        $this->events?->write();
    }

    /** @internal */
    public function events(): ?EventLog
    {
        return $this->events;
    }

    /** The next connect() makes a new client. */
    public function drain(?int $limitMs = null): bool
    {
        return self::drainAll([$this], $limitMs);
    }

    /** @param array<string, mixed> $options by the names of the table */
    private static function open(
        #[\SensitiveParameter] mixed $nodes,
        #[\SensitiveParameter] array $options,
        ?LoggerInterface $logger,
        ?Loop $loop,
        ?EventDispatcherInterface $dispatcher,
    ): self {
        $nodes = self::nodes($nodes) ?? throw new InvalidOptionException('no nodes were given: pass them as argument '
            . '$nodes, or set redlock.nodes in php.ini, or REDLOCK_NODES in the environment (FPM clears the '
            . 'environment unless clear_env = no)');
        if ($nodes === 'memory://') {
            return new MemoryClient($options, Store::ofProcess(), $logger, $dispatcher);
        }
        $options = Options::ofClient($options);
        $native = new Native\Client($nodes, $options);
        $events = EventLog::of($native, $logger, $dispatcher);
        $blocking = new BlockingDriver($native, $events, $loop);
        return new self($native, Options::ofLocks($options), $events, match (true) {
            \extension_loaded('swoole') => new SwooleDriver($native, $events, $blocking),
            \extension_loaded('swow') => new SwowDriver($native, $events),
            default => $blocking,
        });
    }

    /** @internal The list that is given, or that of php.ini or the environment; null: there is none. */
    public static function nodes(#[\SensitiveParameter] mixed $nodes): ?string
    {
        foreach (\is_array($nodes) ? $nodes : [$nodes ?? ''] as $node) {
            \is_string($node) || throw new \TypeError('nodes must be a string, a list of strings or null, '
                . \get_debug_type($node) . ' given');
        }
        return \is_array($nodes) ? \implode(',', $nodes)
            : $nodes ?? ((\ini_get('redlock.nodes') ?: \getenv('REDLOCK_NODES', true)) ?: null);
    }

    private function __clone()
    {
    }

    /** @return array<string, mixed> */
    public function __debugInfo(): array
    {
        return ['nodes' => \array_column($this->describe()['nodes'], 'state', 'node'), 'inFlight' => $this->inFlight()];
    }

    public function __serialize(): array
    {
        throw new \LogicException('a Redlock\Client can not be serialised: connect in the other process');
    }
}
