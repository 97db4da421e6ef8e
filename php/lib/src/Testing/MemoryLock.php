<?php

declare(strict_types=1);

namespace Redlock\Testing;

use Redlock\Exception\BusyException;
use Redlock\Exception\InvalidOptionException;
use Redlock\Exception\LostException;
use Redlock\Exception\NoQuorumException;
use Redlock\Exception\NotHeldException;
use Redlock\Exception\RedlockThrowable;
use Redlock\Lock;
use Redlock\LockInterface;
use Redlock\Options;

/** A lock of a MemoryClient. Waiting for a busy one lets the time of its store pass. */
final class MemoryLock implements LockInterface
{
    private string $token = '';
    private string $state = 'free';
    private string $message = '';
    private ?int $fence = null;
    private int $attempts = 0;
    private int $depth = 0;

    /**
     * @internal MemoryClient::lock() makes locks.
     * @param array<string, mixed> $options by the names of the table
     * @param Lock $checked refuses what is set
     */
    public function __construct(
        private readonly Store $store,
        private readonly string $resource,
        private array $options,
        private bool $renewIsChosen,
        private readonly Lock $checked,
    ) {
    }

    public function resource(): string
    {
        return $this->resource;
    }

    public function acquire(?int $waitMs = null): void
    {
        Lock::refuseWait(__METHOD__, 1, $waitMs);
        $this->take($waitMs, (bool) $this->options['renew']);
    }

    public function tryAcquire(?int $waitMs = 0): bool
    {
        Lock::refuseWait(__METHOD__, 1, $waitMs);
        try {
            $this->take($waitMs, (bool) $this->options['renew']);
            return true;
        } catch (BusyException) {
            return false;
        }
    }

    public function extend(?int $ttlMs = null): void
    {
        $this->setLease(__METHOD__, $ttlMs, $this->store->leftMs($this->resource));
    }

    public function expire(?int $ttlMs = null): void
    {
        $this->setLease(__METHOD__, $ttlMs, 0);
    }

    public function release(): void
    {
        $isInner = --$this->depth > 0;
        $this->refuseWhatIsNotHeld('release');
        if ($isInner) {
            return;
        }
        $this->store->free($this->resource, $this->token);
        $this->state = 'free';
        $this->message = 'released';
    }

    public function run(callable $body, ?int $waitMs = null): mixed
    {
        Lock::refuseWait(__METHOD__, 2, $waitMs);
        $this->take($waitMs, $this->renewIsChosen ? (bool) $this->options['renew'] : true);
        try {
            $result = $body($this);
        } catch (\Throwable $failure) {
            if (--$this->depth < 1) {
                $this->store->free($this->resource, $this->token);
                $this->state = 'free';
            }
            throw $failure;
        }
        if ($this->state !== 'free') {
            try {
                $this->release();
            } catch (LostException $lost) {
                $lost->result = $result;
                throw $lost;
            }
        }
        if ($result instanceof \Generator) {
            throw $this->failure(new InvalidOptionException(
                "\"$this->resource\": the body of run() returned a generator"));
        }
        return $result;
    }

    /** Does nothing: a lock in memory never blocks. */
    public function cancel(): void
    {
    }

    public function fence(): ?int
    {
        return $this->fence;
    }

    /** Locks in memory have no permits. */
    public function slot(): ?int
    {
        return null;
    }

    public function attempts(): int
    {
        return $this->attempts;
    }

    public function remainingMs(): int
    {
        return $this->isHeld() ? $this->store->leftMs($this->resource) : 0;
    }

    public function isHeld(): bool
    {
        $this->look();
        return $this->state === 'held';
    }

    public function isLost(): bool
    {
        $this->look();
        return $this->state === 'lost';
    }

    public function isRenewed(): bool
    {
        return $this->isHeld() && $this->store->isRenewed($this->resource);
    }

    public function set(string $option, bool|int|float|string $value): void
    {
        $this->checked->set($option, $value);
        $isFlag = \in_array($option, ['renew', 'fence', 'reentrant'], true);
        $this->options[$option] = $isFlag ? $value === true || $value === 'true' : $value;
        $this->renewIsChosen = $this->renewIsChosen || $option === 'renew';
    }

    public function token(): string
    {
        return $this->token;
    }

    public function votes(): array
    {
        return ['memory' => $this->message];
    }

    public function message(): string
    {
        return "\"$this->resource\": $this->message";
    }

    public function detach(): string
    {
        $this->refuseWhatIsNotHeld('detach');
        if ($this->depth > 1) {
            throw $this->failure(new InvalidOptionException(
                "detach: \"$this->resource\" was taken $this->depth times; release it until one is left"));
        }
        $this->store->stopRenewing($this->resource);
        $this->state = 'free';
        return $this->token;
    }

    /** @internal MemoryClient::adopt() does. */
    public function takeUp(string $token): void
    {
        [$this->token, $this->state, $this->fence] = [$token, 'adopted', null];
        $this->depth = 1;
    }

    private function setLease(string $method, ?int $ttlMs, int $leastMs): void
    {
        Lock::refuseTtl($method, $ttlMs);
        $ttlMs ??= (int) $this->options['ttl_ms'];
        self::refuse(['ttl_ms' => $ttlMs] + $this->options);
        $this->refuseWhatIsNotHeld('extend');
        $this->refuseWithoutNodes();
        $this->store->hold($this->resource, $this->token, \max($ttlMs, $leastMs), (bool) $this->options['renew']);
        $this->state = 'held';
        $this->message = 'extended';
    }

    private function take(?int $waitMs, bool $renews): void
    {
        if ($this->options['reentrant'] && $this->depth > 0 && ($this->isHeld() || $this->isLost())) {
            $this->refuseWhatIsNotHeld('acquire');
            $this->depth++;
            return;
        }
        if ($this->isHeld()) {
            throw $this->failure(new InvalidOptionException(
                "\"$this->resource\": this object holds the lock already; release it first"));
        }
        self::refuse($this->options);
        $this->attempts = 1;
        $this->refuseWithoutNodes();
        $ttlMs = (int) $this->options['ttl_ms'];
        $leftMs = $waitMs ?? (int) $this->options['wait_ms'];
        while (($token = $this->store->take($this->resource, $ttlMs, $renews)) === null) {
            $busyMs = $this->store->isRenewed($this->resource) ? \PHP_INT_MAX : $this->store->leftMs($this->resource);
            if ($leftMs >= 0 ? $leftMs < $busyMs : $busyMs === \PHP_INT_MAX) {
                $this->store->pass(\max(0, $leftMs));
                $this->message = 'busy';
                throw $this->failure(new BusyException("\"$this->resource\" is held by another lock"));
            }
            $this->store->pass($busyMs);
            $leftMs -= $leftMs < 0 ? 0 : $busyMs;
            $this->attempts++;
        }
        [$this->token, $this->state, $this->message] = [$token, 'held', 'granted'];
        $this->depth = 1;
        $this->fence = $this->options['fence'] ? (int) \hexdec($token) : null;
    }

    /** What passed meanwhile. */
    private function look(): void
    {
        if ($this->state === 'held' && $this->store->tokenOf($this->resource) !== $this->token) {
            [$this->state, $this->message] = ['lost', 'the lease ran out, or its token is gone'];
        }
    }

    /** @param array<string, mixed> $options that may not go together */
    private static function refuse(array $options): void
    {
        try {
            MemoryClient::nowhere($options);
        } catch (InvalidOptionException $refused) {
            throw Options::inNames($refused);
        }
    }

    private function refuseWithoutNodes(): void
    {
        if (!$this->store->reachable) {
            $this->message = 'unreachable';
            throw $this->failure(new NoQuorumException("\"$this->resource\": too few nodes answered"));
        }
    }

    private function refuseWhatIsNotHeld(string $call): void
    {
        $this->look();
        if ($this->state === 'free') {
            throw $this->failure(new NotHeldException("$call: \"$this->resource\" was not taken by this handle"));
        }
        if ($this->state === 'lost' || $this->store->tokenOf($this->resource) !== $this->token) {
            $this->state = 'lost';
            $lost = new LostException("\"$this->resource\": the lock was lost");
            $lost->reason = $this->store->tokenOf($this->resource) === null ? 'expired' : 'gone';
            throw $this->failure($lost);
        }
    }

    /**
     * @template E of RedlockThrowable
     * @param E $failure
     * @return E
     */
    private function failure(RedlockThrowable $failure): RedlockThrowable
    {
        [$failure->resource, $failure->votes] = [$this->resource, $this->votes()];
        return $failure;
    }

    public function __destruct()
    {
        if ($this->state === 'held') {
            $this->store->free($this->resource, $this->token);
        }
    }
}
