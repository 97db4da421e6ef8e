<?php

declare(strict_types=1);

namespace Redlock\Testing;

use Redlock\Client;
use Redlock\ClientInterface;
use Redlock\Elects;
use Redlock\Exception\InvalidOptionException;
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

    /** Where no server can be, and none is looked for. */
    private const NOWHERE = 'unix:///dev/null/redlock';

    public readonly Store $store;

    /** It asks no node; what nodes would refuse by its options is refused by it, in the same words. */
    private readonly Client $nowhere;

    /** @var array<string, mixed> by the names of the table */
    private readonly array $options;

    /** @param array<string, mixed> $options defaults of its locks, by the names of the table */
    public function __construct(array $options = [], ?Store $store = null)
    {
        $this->store = $store ?? new Store();
        $options = Options::fromArray($options);
        $this->nowhere = self::nowhere($options);
        $this->options = $options + ['ttl_ms' => 10000, 'wait_ms' => 15000, 'renew' => false, 'fence' => false,
            'reentrant' => false];
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
    ): MemoryLock {
        return $this->named($resource, Options::given(\get_defined_vars(), $unknown));
    }

    public function lockFromArray(string|array $resource, array $options): MemoryLock
    {
        if (\is_array($resource)) {
            throw new InvalidOptionException('resource is an array; allowed in memory: a string');
        }
        $options = Options::fromArray($options);
        $checked = $this->nowhere->lockFromArray($resource, $options);
        if ($checked->isShared() || $checked->permits() > 1) {
            throw new InvalidOptionException($checked->isShared() ? 'shared is true; allowed in memory: false'
                : "permits is {$checked->permits()}; allowed in memory: 1");
        }
        return new MemoryLock($this->store, $resource, $options + $this->options, isset($options['renew']), $checked);
    }

    /** @param array<string, mixed> $options of named arguments: a refusal uses their names */
    private function named(string|array $resource, array $options): MemoryLock
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
    ): MemoryLock {
        $lock = $this->named($resource, Options::given(\get_defined_vars(), $unknown));
        $lock->takeUp($token);
        return $lock;
    }

    public function status(string $resource): ResourceStatus
    {
        $token = $this->store->reachable ? $this->store->tokenOf($resource) : null;
        $leftMs = $token === null ? null : $this->store->leftMs($resource);
        [$verdict, $status, $words] = match (true) {
            !$this->store->reachable => [Verdict::Unknown, \REDLOCK_UNREACHABLE, 'unreachable'],
            $token === null => [Verdict::Free, \REDLOCK_NOT_HELD, 'no key'],
            default => [Verdict::Held, \REDLOCK_BUSY, 'busy'],
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
        return $this->nowhere->option($name);
    }

    public function inFlight(): int
    {
        return 0;
    }

    public function logEvents(): void
    {
    }

    public function drain(?int $limitMs = null): bool
    {
        $this->store->releaseAll();
        return $this->store->reachable;
    }

    /**
     * @internal Refuses options that do not go together, too.
     *
     * @param array<string, mixed> $options
     */
    public static function nowhere(array $options): Client
    {
        return Client::fromArray(['nodes' => self::NOWHERE] + $options);
    }
}
