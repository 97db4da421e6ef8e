<?php

declare(strict_types=1);

namespace Redlock;

/**
 * A resource with options, free to share by Fibers and coroutines: each acquisition is a hold of its own. The methods
 * that a lock has in common with a hold speak of, and act for, the newest hold that the caller, its Fiber or coroutine,
 * has acquired by this object. Without one isHeld() and isLost() are false, remainingMs() is 0, and others throw
 * NotHeldException. When the object goes, the holds that nobody else has are released, without waiting.
 */
interface LockInterface extends HoldInterface
{
    /**
     * Takes the lock, waiting up to $waitMs: 0 one attempt, -1 without limit, null the option waitMs. With the option
     * reentrant the caller may hold it already: that hold is then released as often as it was taken.
     *
     * @throws Exception\BusyException others held it to the end
     * @throws Exception\LostException reentrant: it was lost, and has to be released as often as it was taken first
     * @throws Exception\NoQuorumException too few nodes answered
     * @throws Exception\RedlockException|Exception\InvalidOptionException others of the table in docs/php.md
     */
    public function acquire(?int $waitMs = null): HoldInterface;

    /**
     * As acquire(), with one attempt unless $waitMs says more; false only if others hold the lock, or held it to the
     * end of the wait: refused() says who.
     *
     * @phpstan-impure
     */
    public function tryAcquire(?int $waitMs = 0): HoldInterface|false;

    /** Why the last tryAcquire() of this object that returned false did so. */
    public function refused(): ?Exception\BusyException;

    /**
     * Takes the lock, calls $body with the hold, and releases that whatever happens. The lease is renewed meanwhile,
     * unless the option renew was given. If the body fails its own error leaves. What fails after the body has what it
     * returned: LostException, if the lock was lost meanwhile, and every other exception of this package in $result;
     * one of other code (a logger's, for example) has such an exception as the last of its getPrevious().
     *
     * @template T
     * @param callable(Hold): T $body no generator: its code would run after the release
     * @return T
     */
    public function run(callable $body, ?int $waitMs = null): mixed;

    /**
     * Ends the waits of acquire(), tryAcquire() and run() of this object in other Fibers or coroutines, or under a
     * signal handler: they throw CancelledException. What is held stays held.
     */
    public function cancel(): void;

    /** Asks every node who holds the resource, each of several, or each of the permits, without touching it. */
    public function status(): ResourceStatus;

    /**
     * Another lock on the same resource, with these options in place of its own.
     *
     * @param never ...$unknown
     */
    public function with(
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
}
