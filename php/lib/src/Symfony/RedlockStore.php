<?php

declare(strict_types=1);

namespace Redlock\Symfony;

use Redlock\Client;
use Redlock\Exception\BusyException;
use Redlock\Exception\InvalidOptionException;
use Redlock\Exception\LostException;
use Redlock\Exception\NotHeldException;
use Redlock\Exception\RedlockThrowable;
use Redlock\Lease;
use Symfony\Component\Lock\BlockingStoreInterface;
use Symfony\Component\Lock\Exception\InvalidTtlException;
use Symfony\Component\Lock\Exception\LockAcquiringException;
use Symfony\Component\Lock\Exception\LockConflictedException;
use Symfony\Component\Lock\Exception\LockExpiredException;
use Symfony\Component\Lock\Exception\LockReleasingException;
use Symfony\Component\Lock\Key;

/**
 * Redlock under symfony/lock: new LockFactory(new RedlockStore($client)).
 *
 * A Key carries the token alone, so it can be serialised and continued elsewhere. A TTL above maxTtlMs becomes a lease
 * of maxTtlMs that is renewed until the TTL has passed.
 */
final class RedlockStore implements BlockingStoreInterface
{
    /** A wait is cut into pieces: after each of them a want of nodes is reported instead of waited for. */
    private const WAIT_SLICE_MS = 1000;

    /** @var \WeakMap<Key, Hold> */
    private \WeakMap $holds;

    /** @param float $initialTtl seconds, as in LockFactory; save() has no TTL of its own */
    public function __construct(private readonly Client $client, private readonly float $initialTtl = 300.0)
    {
        if ($initialTtl <= 0) {
            throw new InvalidTtlException(
                \sprintf('%s() expects a strictly positive TTL, %s given.', __METHOD__, $initialTtl));
        }
        $this->holds = new \WeakMap();
    }

    public function save(Key $key): void
    {
        $this->acquire($key, static fn (Hold $hold) => $hold->lock->acquire(0));
    }

    public function waitAndSave(Key $key): void
    {
        $this->acquire($key, static function (Hold $hold): void {
            for ($waitMs = 0;; $waitMs = self::WAIT_SLICE_MS) {
                try {
                    $hold->lock->acquire($waitMs);
                    return;
                } catch (BusyException) {
                }
            }
        });
    }

    public function putOffExpiration(Key $key, float $ttl): void
    {
        $hold = $this->find($key) ?? throw new LockConflictedException("\"$key\" is not held by this key.");
        $this->extend($key, $hold, $ttl);
    }

    public function delete(Key $key): void
    {
        $hold = $this->find($key);
        unset($this->holds[$key]);
        $key->removeState(self::class);
        try {
            $hold?->lock->release();
        } catch (LostException | NotHeldException) {
            /* it is not held, which is what was asked for */
        } catch (RedlockThrowable $failure) {
            throw new LockReleasingException($failure->getMessage(), 0, $failure);
        }
    }

    public function exists(Key $key): bool
    {
        $hold = $this->find($key);
        if ($hold === null) {
            return false;
        }
        return $hold->lock->isHeld() || ($hold->adopted && $this->confirm($key, $hold));
    }

    /** @param \Closure(Hold): void $take */
    private function acquire(Key $key, \Closure $take): void
    {
        $hold = $this->find($key);
        if ($hold !== null && ($hold->adopted || $hold->lock->isHeld())) {
            $this->extend($key, $hold, $this->initialTtl);
            return;
        }
        try {
            $hold = new Hold(
                $this->client->lockFromArray((string) $key, Lease::of($this->client, $this->initialTtl)->options()));
            $take($hold);
        } catch (BusyException $busy) {
            throw new LockConflictedException($busy->getMessage(), 0, $busy);
        } catch (InvalidOptionException $refused) {
            throw new LockExpiredException($refused->getMessage(), 0, $refused);
        } catch (RedlockThrowable $failure) {
            throw new LockAcquiringException($failure->getMessage(), 0, $failure);
        }
        $hold->taken();
        $this->holds[$key] = $hold;
        $key->setState(self::class, $hold->lock->token());
        $key->reduceLifetime($hold->remaining($this->initialTtl));
    }

    private function extend(Key $key, Hold $hold, float $ttl): void
    {
        try {
            $lease = Lease::of($this->client, $ttl);
            $hold->extend($lease);
            $key->reduceLifetime($hold->remaining($ttl));
        } catch (LostException | NotHeldException $lost) {
            throw new LockConflictedException($lost->getMessage(), 0, $lost);
        } catch (InvalidOptionException $refused) {
            $this->delete($key);
            throw new LockExpiredException($refused->getMessage(), 0, $refused);
        } catch (RedlockThrowable $failure) {
            throw new LockAcquiringException($failure->getMessage(), 0, $failure);
        }
    }

    /** A token from elsewhere counts once the nodes have confirmed it; its lifetime is the Key's, not more. */
    private function confirm(Key $key, Hold $hold): bool
    {
        $left = $key->getRemainingLifetime();
        try {
            $hold->extend(Lease::of($this->client, $left ?? $this->initialTtl));
        } catch (RedlockThrowable) {
            return false;
        }
        return $hold->lock->isHeld();
    }

    private function find(Key $key): ?Hold
    {
        if (!isset($this->holds[$key]) && $key->hasState(self::class)) {
            $this->holds[$key] = new Hold($this->client->adopt((string) $key, $key->getState(self::class)), true);
        }
        return $this->holds[$key] ?? null;
    }
}
