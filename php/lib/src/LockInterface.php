<?php

declare(strict_types=1);

namespace Redlock;

/**
 * One holder's handle on one resource. One Fiber, coroutine or function uses it at a time. When the object goes, a lock
 * that is still held is released, without waiting.
 */
interface LockInterface
{
    public function resource(): string;

    /**
     * Takes the lock, waiting up to $waitMs: 0 one attempt, -1 without limit, null the option waitMs. With the option
     * reentrant it may be held already: it is then released as often as it was taken.
     *
     * @throws Exception\BusyException others held it to the end
     * @throws Exception\LostException reentrant: it was lost, and has to be released as often as it was taken first
     * @throws Exception\NoQuorumException too few nodes answered
     */
    public function acquire(?int $waitMs = null): void;

    /**
     * As acquire(), with one attempt unless $waitMs says more; false only if others hold the lock, or held it to the
     * end of the wait.
     */
    public function tryAcquire(?int $waitMs = 0): bool;

    /**
     * Prolongs the lease to $ttlMs from now (null: the option ttlMs); it is never shortened.
     *
     * @throws Exception\LostException it is gone for good
     * @throws Exception\NoQuorumException it stays held for remainingMs()
     */
    public function extend(?int $ttlMs = null): void;

    /**
     * Sets what is left of the lease to $ttlMs from now (null: the option ttlMs), longer or shorter.
     *
     * @throws Exception\LostException it is gone for good
     * @throws Exception\NoQuorumException it stays held for remainingMs()
     */
    public function expire(?int $ttlMs = null): void;

    /**
     * Gives the lock up: it is not held from the first moment of the call, unless it was taken more often (reentrant).
     *
     * @throws Exception\LostException it had lapsed before
     * @throws Exception\NotHeldException it was never taken
     */
    public function release(): void;

    /**
     * Takes the lock, calls $body with it, and releases it whatever happens. The lease is renewed meanwhile, unless the
     * option renew was given. If the body fails its own error leaves. What fails after the body has what it returned:
     * LostException, if the lock was lost meanwhile, and every other exception of this package in $result; one of
     * other code (a logger's, for example) has such an exception as the last of its getPrevious().
     *
     * @template T
     * @param callable(static): T $body no generator: its code would run after the release
     * @return T
     */
    public function run(callable $body, ?int $waitMs = null): mixed;

    /**
     * Ends a wait of acquire(), tryAcquire() or run() in another Fiber or coroutine, or under a signal handler: it
     * throws CancelledException. A lock that is held stays held.
     */
    public function cancel(): void;

    /** How much longer the lock is held without an extension; 0 if it is not held. */
    public function remainingMs(): int;

    public function isHeld(): bool;

    /** It was held and has lapsed. */
    public function isLost(): bool;

    /** The lease is extended in the background while it is held. */
    public function isRenewed(): bool;

    /** Sets an option by the name of the table; it counts from the next operation. */
    public function set(string $option, bool|int|float|string $value): void;

    /**
     * The fencing number of the lease, or of the last one, with the option fence: larger than that of every holder
     * before. A store that rejects smaller numbers than it has seen rejects a holder whose lease is over. Null without.
     */
    public function fence(): ?int;

    /** With the option permits: the slot of the permit that is held or was held last, from 0; null without. */
    public function slot(): ?int;

    /** How many attempts the last acquisition or extension has made. */
    public function attempts(): int;

    /** The token of the lease, or of the last one; "" before the first. */
    public function token(): string;

    /** @return array<string, string> what every node answered to the last operation, by its name */
    public function votes(): array;

    /** The last operation in one line. */
    public function message(): string;

    /** Hands the lock over: this object forgets it, and ClientInterface::adopt() takes the token up elsewhere. */
    public function detach(): string;
}
