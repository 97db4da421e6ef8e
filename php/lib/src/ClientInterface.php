<?php

declare(strict_types=1);

namespace Redlock;

/**
 * What a program needs of a client: Client has it on real nodes, Testing\MemoryClient in memory. For type declarations,
 * mocks and decorators; lock() grows with the options, so pass it named arguments only.
 */
interface ClientInterface
{
    /**
     * A lock on a resource (any bytes), or on 1 to 100 of them, all of which it holds or none. It is not taken yet;
     * options by name override the client's.
     *
     * @param string|list<string> $resource
     * @param never ...$unknown
     */
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
    ): LockInterface;

    /**
     * @param string|list<string> $resource
     * @param array<string, mixed> $options by the names of the table ('ttl_ms' => 10000), or times with a unit
     *     ('ttl' => '10s')
     */
    public function lockFromArray(string|array $resource, array $options): LockInterface;

    /**
     * Takes over a token that another process detached: extend() makes it held, release() deletes it. That nobody else
     * held the lock in between is not promised. Options as for lock().
     *
     * @param string|list<string> $resource
     * @param never ...$unknown
     */
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
    ): HoldInterface;

    /**
     * A candidate for the lead of a resource: `$client->election('scheduler')->run(fn (Term $t) => lead($t->fence()))`.
     * Its lease is renewed, and ttlMs is how long the seat is empty after a leader died. Options as for lock().
     *
     * @param never ...$unknown
     */
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
    ): Election;

    /**
     * Asks every node who holds the resource, without touching it.
     *
     * @param string|list<string> $resource
     * @param ?int $permits each of them is asked for, unless $slot names one; null: the option
     */
    public function status(string|array $resource, ?int $permits = null, ?int $slot = null): ResourceStatus;

    /**
     * Lists the locks that the nodes have, and how many wait for each: for people. It goes through all keys of every
     * node, up to 25,000 a second, and the user needs +scan.
     *
     * @param string $pattern as Redis' SCAN has it, of the name behind keyPrefix; without a *, ? or [ it is one name,
     *     which needs no SCAN, and is listed also when it is free
     * @param ?int $limitMs then it ends with what was found; null: no limit
     * @throws Exception\NoQuorumException too few nodes have told all that they have
     * @throws Exception\RedlockException|Exception\InvalidOptionException others of the table in docs/php.md
     */
    public function locks(string $pattern = '*', ?int $limitMs = null): Listing;

    /**
     * Deletes the resource's key on every node, whoever holds it: for operators, to free a lock whose holder is known
     * to be gone.
     *
     * @param string|list<string> $resource
     * @param ?int $permits all of them are deleted, unless $slot names one; null: the option
     * @throws Exception\NoQuorumException too few nodes answered
     * @throws Exception\RedlockException|Exception\InvalidOptionException others of the table in docs/php.md
     */
    public function remove(string|array $resource, ?int $permits = null, ?int $slot = null): void;

    /** @return array<string, mixed> options, nodes, what each may vote on, counters */
    public function describe(): array;

    /**
     * Asks every node, then describes the client as `redlock doctor --json` does: how many nodes are 'voting', and
     * for each of 'nodes' whether it 'votes', 'why' not, and an 'advice'. Waits for up to connectTimeoutMs.
     *
     * @return array<string, mixed>
     */
    public function check(): array;

    /** Figures of this client's locks and nodes as OpenMetrics text, for Prometheus. No I/O. */
    public function metrics(): string;

    /** The value of an option by the name of the table, as text. */
    public function option(string $name): string;

    /**
     * How many calls of this client's locks are under way in Fibers and coroutines: acquisitions that wait, releases
     * that are not confirmed, run() from its beginning to its end. Only at 0 a drain() cuts nothing short.
     *
     * @phpstan-impure
     */
    public function inFlight(): int;

    /** Writes what happened since the last call to the logger; every operation does so too. */
    public function logEvents(): void;

    /**
     * Leaves cleanly: releases what is held and waits for the nodes, up to $limitMs (null: exitDrainMs). False if a
     * node did not answer.
     */
    public function drain(?int $limitMs = null): bool;
}
