<?php

declare(strict_types=1);

namespace Redlock;

/**
 * One hold of a lock, from the acquisition to release() or detach(). It never speaks of another hold, nor acts for one:
 * what has ended stays ended. A hold that goes without a release is released, without waiting.
 */
interface HoldInterface
{
    /** Of several, the first. */
    public function resource(): string;

    /**
     * Prolongs the lease to $ttlMs from now (null: the option ttlMs); it is never shortened.
     *
     * @throws Exception\LostException it is gone for good
     * @throws Exception\NoQuorumException it stays held for remainingMs()
     * @throws Exception\RedlockException|Exception\InvalidOptionException others of the table in docs/php.md
     */
    public function extend(?int $ttlMs = null): void;

    /**
     * Sets what is left of the lease to $ttlMs from now (null: the option ttlMs), longer or shorter. Renewals go
     * on with it until the next expire(), also after an extend().
     *
     * @throws Exception\LostException it is gone for good
     * @throws Exception\NoQuorumException it stays held for remainingMs()
     * @throws Exception\RedlockException|Exception\InvalidOptionException others of the table in docs/php.md
     */
    public function expire(?int $ttlMs = null): void;

    /**
     * A writer goes on as a reader (the option shared) and lets other readers in, at once and without letting a writer
     * in; the lease as by extend().
     *
     * @throws Exception\LostException it is gone for good
     * @throws Exception\NoQuorumException it stays held for remainingMs()
     * @throws Exception\RedlockException|Exception\InvalidOptionException others of the table in docs/php.md
     */
    public function downgrade(?int $ttlMs = null): void;

    /**
     * Gives the lock up: it is not held from the first moment of the call, unless it was taken more often (reentrant).
     *
     * @throws Exception\LostException it had lapsed before
     * @throws Exception\NotHeldException it has ended before
     * @throws Exception\RedlockException others of the table in docs/php.md
     */
    public function release(): void;

    /** Hands the lock over: it ends here, and ClientInterface::adopt() takes the token up elsewhere. */
    public function detach(): string;

    /**
     * @throws Exception\LostException it was lost
     * @throws Exception\NotHeldException it was released or detached
     * @throws Exception\RedlockException others of the table in docs/php.md
     */
    public function check(): void;

    /**
     * How much longer the lock is held without an extension; 0 if it is not held.
     *
     * @phpstan-impure
     */
    public function remainingMs(): int;

    /** @phpstan-impure */
    public function isHeld(): bool;

    /**
     * It was not given up here, and somebody else may hold the lock: the lease has ended, the client was drained.
     *
     * @phpstan-impure
     */
    public function isLost(): bool;

    /** The lease is extended in the background while it is held. */
    public function isRenewed(): bool;

    /**
     * The fencing number, with the option fence: larger than that of every holder before. A store that rejects smaller
     * numbers than it has seen rejects a holder whose lease is over. Null without.
     */
    public function fence(): ?int;

    /** With the option permits: which of them it is, from 0; null without. */
    public function slot(): ?int;

    public function token(): string;

    /** How many attempts the acquisition or the last extension has made. */
    public function attempts(): int;

    /** @return array<string, string> what every node answered to the last operation, by its name */
    public function votes(): array;

    /** The last operation in one line. */
    public function message(): string;
}
