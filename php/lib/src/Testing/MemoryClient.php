<?php

declare(strict_types=1);

namespace Redlock\Testing;

use Redlock\ClientInterface;
use Redlock\Elects;
use Redlock\Exception\InvalidOptionException;
use Redlock\Hold;
use Redlock\Lock;
use Redlock\Native;
use Redlock\Options;
use Redlock\ResourceStatus;
use Redlock\Verdict;

/**
 * A client without nodes, for unit tests of programs that take locks: its locks are in this object, and time passes
 * only by pass() and by waiting for a busy lock. All clients that share a $store exclude each other.
 */
final class MemoryClient implements ClientInterface
{
    use Elects;

    public readonly Store $store;

    /** It asks no node; what nodes would refuse by its options is refused by it, in the same words. */
    private readonly Native\Client $nowhere;

    private readonly MemoryDriver $driver;

    /** @var array<string, mixed> by the names of the table */
    private readonly array $options;

    /** @param array<string, mixed> $options defaults of its locks, by the names of the table */
    public function __construct(array $options = [], ?Store $store = null)
    {
        $this->store = $store ?? new Store();
        $this->options = Options::fromArray($options);
        $this->nowhere = new Native\Client('unix:///dev/null/redlock', $this->options);
        $this->driver = new MemoryDriver($this->nowhere, $this->store);
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

    /** @param never ...$unknown */
    public function lock(
        string|array $resource,
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
        return $this->named($resource, Options::given(\get_defined_vars(), $unknown));
    }

    public function lockFromArray(string|array $resource, array $options): Lock
    {
        return new Lock($this->driver, $resource, Options::fromArray($options), Options::ofLocks($this->options));
    }

    /** @param array<string, mixed> $options of named arguments: a refusal uses their names */
    private function named(string|array $resource, array $options): Lock
    {
        try {
            return $this->lockFromArray($resource, $options);
        } catch (InvalidOptionException $refused) {
            throw Options::inNames($refused);
        }
    }

    /** @param never ...$unknown */
    public function adopt(
        string|array $resource,
        string $token,
        /* options of locks: made by ./dev docs */
        ?int $ttlMs = null, ?int $waitMs = null, ?int $outageWaitMs = null, ?int $retryCount = null,
        ?int $retryDelayMs = null, ?float $retryJitter = null, ?bool $queue = null, ?bool $fence = null,
        ?bool $shared = null, ?int $permits = null, ?int $slot = null, ?string $layout = null,
        ?float $driftFactor = null, int|string|null $nodeTimeoutMs = null, int|string|null $minValidityMs = null,
        ?bool $renew = null, ?bool $reentrant = null, ?int $maxExtensions = null, ?int $maxHoldMs = null,
        ?bool $strictRelease = null,
        /* end of options */
        mixed ...$unknown,
    ): Hold {
        return $this->named($resource, Options::given(\get_defined_vars(), $unknown))->adopt($token);
    }

    public function status(string $resource): ResourceStatus
    {
        $token = $this->store->reachable ? $this->store->holders([$resource])[0] ?? null : null;
        $held = $token === null ? null : $this->store->find($token);
        $leftMs = $held === null ? null : $held['untilMs'] - $this->store->nowMs;
        [$verdict, $status, $words] = match (true) {
            !$this->store->reachable => [Verdict::Unknown, \REDLOCK_UNREACHABLE, 'unreachable'],
            $held === null => [Verdict::Free, \REDLOCK_NOT_HELD, 'no key'],
            default => [$held['isShared'] ? Verdict::Shared : Verdict::Held, \REDLOCK_BUSY, 'busy'],
        };
        return new ResourceStatus($resource, $verdict, "memory: $words", $token, $leftMs, ['memory' => [
            'status' => $status, 'words' => $words, 'ttl_ms' => (string) $leftMs, 'token' => (string) $token]]);
    }

    public function remove(string $resource): void
    {
        $this->store->lose($resource);
    }

    public function check(): array
    {
        return $this->describe();
    }

    public function describe(): array
    {
        $votes = $this->store->reachable;
        return ['options' => $this->options, 'quorum' => 1, 'voting' => (int) $votes, 'nodes' => [['node' => 'memory',
            'state' => $votes ? 'ready' : 'off', 'votes' => $votes, 'why' => $votes ? '' : 'unreachable',
            'advice' => '']]];
    }

    public function metrics(): string
    {
        return "# EOF\n";
    }

    public function option(string $name): string
    {
        $ofLocks = Options::ofLocks($this->options);
        return isset($ofLocks[$name]) ? $this->driver->handle('option', $ofLocks)->get($name)
            : $this->nowhere->get($name);
    }

    public function inFlight(): int
    {
        return $this->driver->inFlight();
    }

    public function logEvents(): void
    {
    }

    public function drain(?int $limitMs = null): bool
    {
        $this->store->releaseAll();
        return $this->store->reachable;
    }
}
