<?php

declare(strict_types=1);

namespace Redlock;

use Redlock\Exception\InvalidOptionException;
use Redlock\Exception\LostException;

/**
 * One holder's handle on one resource. One Fiber, coroutine or function uses it at a time. When the object goes, a lock
 * that is still held is released, without waiting.
 */
final class Lock
{
    /** @internal Client::lock() makes locks. */
    public function __construct(
        private readonly Client $client,
        private readonly Native\Lock $native,
        public readonly string $resource,
        private readonly bool $renewIsChosen,
    ) {
    }

    /**
     * Takes the lock, waiting up to $waitMs: 0 one attempt, -1 without limit, null the option waitMs.
     *
     * @throws Exception\BusyException others held it to the end
     * @throws Exception\NoQuorumException too few nodes answered
     */
    public function acquire(?int $waitMs = null): void
    {
        if ($waitMs !== null && $waitMs < -1) {
            throw new \ValueError(__METHOD__
                . "(): Argument #1 (\$waitMs) must be null, -1 (no limit) or at least 0, $waitMs given");
        }
        $status = $this->client->operate($this->native, \REDLOCK_ACQUIRE, $waitMs ?? -2);
        if ($status !== \REDLOCK_OK) {
            $this->fail($status);
        }
    }

    /** One attempt; false only if others hold the lock. */
    public function tryAcquire(): bool
    {
        $status = $this->client->operate($this->native, \REDLOCK_ACQUIRE, 0);
        if ($status !== \REDLOCK_OK && $status !== \REDLOCK_BUSY) {
            $this->fail($status);
        }
        return $status === \REDLOCK_OK;
    }

    /**
     * Prolongs the lease to $ttlMs from now (null: the option ttlMs); it is never shortened.
     *
     * @throws LostException it is gone for good
     * @throws Exception\NoQuorumException it stays held for remainingMs()
     */
    public function extend(?int $ttlMs = null): void
    {
        if ($ttlMs !== null && $ttlMs < 1) {
            throw new \ValueError(__METHOD__ . "(): Argument #1 (\$ttlMs) must be null or at least 1, $ttlMs given");
        }
        $status = $this->client->operate($this->native, \REDLOCK_EXTEND, $ttlMs ?? 0);
        if ($status !== \REDLOCK_OK) {
            $this->fail($status);
        }
    }

    /**
     * Gives the lock up: it is not held from the first moment of the call.
     *
     * @throws LostException it had lapsed before
     * @throws Exception\NotHeldException it was never taken
     */
    public function release(): void
    {
        $status = $this->client->operate($this->native, \REDLOCK_RELEASE, 0);
        if ($status !== \REDLOCK_OK) {
            $this->fail($status);
        }
    }

    /**
     * Takes the lock, calls $body with it, and releases it whatever happens. The lease is renewed meanwhile, unless the
     * option renew was given. If the body fails its own error leaves; if it succeeds although the lock was lost,
     * LostException has what it returned in $result.
     *
     * @template T
     * @param callable(self): T $body
     * @return T
     */
    public function run(callable $body, ?int $waitMs = null): mixed
    {
        $usual = $this->native->get('renew');
        $this->native->set('renew', $this->renewIsChosen ? $usual : 'true');
        try {
            $this->acquire($waitMs);
            return $this->runHeld($body);
        } finally {
            $this->native->set('renew', $usual);
        }
    }

    /** How much longer the lock is held without an extension; 0 if it is not held. */
    public function remainingMs(): int
    {
        return $this->native->validityMs();
    }

    public function isHeld(): bool
    {
        return $this->native->state() === \REDLOCK_STATE_HELD;
    }

    /** It was held and has lapsed. */
    public function isLost(): bool
    {
        return $this->native->state() === \REDLOCK_STATE_LOST;
    }

    /** The lease is extended in the background while it is held. */
    public function isRenewed(): bool
    {
        return $this->native->get('renew') === 'true';
    }

    /** Sets an option by the name of the table, as text; it counts from the next operation. */
    public function set(string $option, string $value): void
    {
        $this->native->set($option, $value);
    }

    /** The token of the lease, or of the last one; "" before the first. */
    public function token(): string
    {
        return $this->native->token();
    }

    /** @return array<string, string> what every node answered to the last operation, by its name */
    public function votes(): array
    {
        return \array_map(static fn (array $answer): string => $answer['words'], $this->native->answers());
    }

    /** The last operation in one line. */
    public function message(): string
    {
        return $this->native->message();
    }

    /** Hands the lock over: this object forgets it, and Client::adopt() takes the token up elsewhere. */
    public function detach(): string
    {
        $token = $this->native->token();
        $status = $this->native->detach();
        if ($status !== \REDLOCK_OK) {
            $this->fail($status);
        }
        return $token;
    }

    /** @internal Client::adopt() does. */
    public function takeUp(string $token): void
    {
        $status = $this->native->adopt($token);
        if ($status !== \REDLOCK_OK) {
            $this->fail($status);
        }
    }

    private function fail(int $status): never
    {
        try {
            $this->native->fail($status);
        } catch (InvalidOptionException $refused) { /* options that do not go together are refused here */
            throw Options::inNames($refused);
        }
    }

    private function runHeld(callable $body): mixed
    {
        $returned = false;
        try {
            $result = $body($this);
            $returned = true;
        } finally {
            if (!$returned) {
                $this->releaseAfterFailure();
            }
        }
        $this->releaseAfterSuccess($result);
        return $result;
    }

    private function releaseAfterSuccess(mixed $result): void
    {
        if ($this->native->state() === \REDLOCK_STATE_FREE) {
            return; /* the body released or detached it */
        }
        try {
            $this->release();
        } catch (LostException $lost) {
            $lost->result = $result;
            throw $lost;
        }
    }

    private function releaseAfterFailure(): void
    {
        if ($this->native->state() !== \REDLOCK_STATE_FREE) {
            $status = $this->client->operate($this->native, \REDLOCK_RELEASE, 0);
            $this->client->warnUnlessReleased($status, $this->native);
        }
    }

    private function __clone()
    {
    }

    public function __serialize(): array
    {
        throw new \LogicException('a Redlock\Lock can not be serialised: detach() it and adopt() its token elsewhere');
    }
}
