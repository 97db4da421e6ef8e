<?php

declare(strict_types=1);

namespace Redlock\Testing;

use Psr\EventDispatcher\EventDispatcherInterface;
use Psr\Log\LoggerInterface;
use Redlock\Client;
use Redlock\EventLog;
use Redlock\ListedLock;
use Redlock\Listing;
use Redlock\Native;
use Redlock\Options;

/**
 * A client without nodes, for unit tests of programs that take locks: its locks are in its $store, and time passes only
 * by pass() and by waiting for a busy lock. Those that share a $store exclude each other, as all of `memory://` do.
 */
final class MemoryClient extends Client
{
    public readonly Store $store;

    private readonly MemoryDriver $driver;

    /** @param array<string, mixed> $options defaults of its locks, by the names of the table */
    public function __construct(
        #[\SensitiveParameter] array $options = [],
        ?Store $store = null,
        ?LoggerInterface $logger = null,
        ?EventDispatcherInterface $dispatcher = null,
    ) {
        $this->store = $store ?? new Store();
        $options = Options::ofClient(Options::fromArray($options));
        /* It asks no node; what nodes would refuse by its options is refused by it, in the same words. */
        \preg_match('/[?&]max_ttl=\w+$/D', $options['nodes'] ?? '', $maxTtl);
        $nowhere = new Native\Client('unix:///dev/null/redlock' . \strtr($maxTtl[0] ?? '', '&', '?'), $options);
        $events = EventLog::of($nowhere, $logger, $dispatcher);
        $this->driver = new MemoryDriver($nowhere, $events, $this->store);
        parent::__construct($nowhere, Options::ofLocks($options), $events, $this->driver);
    }

    /** Time passes: leases end, renewed ones are extended. */
    public function pass(int $ms): void
    {
        $this->store->pass($ms);
    }

    /** The nodes lose the resource, as by a restart without data; a holder's lock is lost. */
    public function lose(string $resource): void
    {
        $this->store->lose($resource);
    }

    /** From now on too few nodes answer, or enough of them again. */
    public function setReachable(bool $reachable): void
    {
        $this->store->reachable = $reachable;
    }

    /** Without who waits: nobody does, as waiting lets the time pass. */
    public function locks(string $pattern = '*', ?int $limitMs = null): Listing
    {
        $this->store->reachable || $this->driver->handle($pattern, [])->fail(\REDLOCK_NO_QUORUM);
        $matching = static fn (ListedLock $one): bool => \fnmatch($pattern, $one->resource);
        return new Listing(\array_values(\array_filter($this->store->listed(), $matching)));
    }

    public function describe(): array
    {
        $votes = $this->store->reachable;
        return ['quorum' => 1, 'voting' => (int) $votes, 'nodes' => [['node' => 'memory',
            'state' => $votes ? 'ready' : 'off', 'votes' => $votes, 'why' => $votes ? '' : 'unreachable',
            'advice' => '']]] + parent::describe();
    }

    /** No node waits. */
    public function bootstrap(bool $new = false, bool $yes = false, bool $replace = false): array
    {
        return [];
    }

    protected function beginDrain(int $limitMs): void
    {
        $this->driver->close();
    }

    protected function endDrain(): bool
    {
        return $this->store->reachable;
    }
}
