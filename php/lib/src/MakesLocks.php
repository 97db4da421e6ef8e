<?php

declare(strict_types=1);

namespace Redlock;

use Redlock\Exception\InvalidOptionException;

/** @internal The calls of a client that are about a lock. */
trait MakesLocks
{
    /**
     * @param string|list<string> $resource
     * @param array<string, mixed> $options by the names of the table
     */
    abstract private function make(string|array $resource, array $options): Lock;

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
        if ($unknown === [] && \func_num_args() === 1) {
            return $this->make($resource, []);
        }
        return $this->named($resource, Options::given(\get_defined_vars(), $unknown));
    }

    public function lockFromArray(string|array $resource, array $options): Lock
    {
        return $this->make($resource, Options::fromArray($options));
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

    /** @param never ...$unknown */
    public function election(
        string $resource,
        /* options of locks: made by ./dev docs */
        ?int $ttlMs = null, ?int $waitMs = null, ?int $outageWaitMs = null, ?int $retryCount = null,
        ?int $retryDelayMs = null, ?float $retryJitter = null, ?bool $queue = null, ?bool $fence = null,
        ?bool $shared = null, ?int $permits = null, ?int $slot = null, ?string $layout = null,
        ?float $driftFactor = null, int|string|null $nodeTimeoutMs = null, int|string|null $minValidityMs = null,
        ?bool $renew = null, ?bool $reentrant = null, ?int $maxExtensions = null, ?int $maxHoldMs = null,
        ?bool $strictRelease = null,
        /* end of options */
        mixed ...$unknown,
    ): Election {
        $options = Election::options(Options::given(\get_defined_vars(), $unknown));
        return new Election($this->named($resource, $options)->remade([], isElected: true));
    }

    public function status(string|array $resource, ?int $permits = null, ?int $slot = null): ResourceStatus
    {
        return $this->named($resource, Options::given(\get_defined_vars(), []))->status();
    }

    public function remove(string|array $resource, ?int $permits = null, ?int $slot = null): void
    {
        $this->named($resource, Options::given(\get_defined_vars(), []))->remove();
    }

    /**
     * With options that were given as named arguments: a refusal uses their names.
     *
     * @param string|list<string> $resource
     * @param array<string, mixed> $options by the names of the table
     */
    private function named(string|array $resource, array $options): Lock
    {
        try {
            return $this->make($resource, $options);
        } catch (InvalidOptionException $refused) {
            throw Options::inNames($refused);
        }
    }
}
