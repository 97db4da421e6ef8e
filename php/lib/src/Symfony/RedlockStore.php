<?php

declare(strict_types=1);

namespace Redlock\Symfony;

use Redlock\ClientInterface;
use Redlock\Exception\BusyException;
use Redlock\Exception\InvalidOptionException;
use Redlock\Exception\LostException;
use Redlock\Exception\NotHeldException;
use Redlock\Exception\RedlockThrowable;
use Redlock\Verdict;
use Symfony\Component\Lock\BlockingSharedLockStoreInterface;
use Symfony\Component\Lock\BlockingStoreInterface;
use Symfony\Component\Lock\Exception\InvalidArgumentException;
use Symfony\Component\Lock\Exception\InvalidTtlException;
use Symfony\Component\Lock\Exception\LockAcquiringException;
use Symfony\Component\Lock\Exception\LockConflictedException;
use Symfony\Component\Lock\Exception\LockExpiredException;
use Symfony\Component\Lock\Exception\LockReleasingException;
use Symfony\Component\Lock\Key;

/**
 * Redlock under symfony/lock: new LockFactory(new RedlockStore($client)).
 *
 * A Key carries the token alone, so it can be serialised and continued elsewhere; it never states a lifetime that the
 * nodes do not hold. A TTL above the client's maxTtlMs becomes a lease of maxTtlMs that is renewed until the TTL has
 * passed or the process has ended.
 *
 * A Key that is held for writing may go on for reading (saveRead), at once and without letting a writer in. One that is
 * held for reading has to be deleted before it can be saved for writing.
 */
final class RedlockStore implements BlockingStoreInterface, BlockingSharedLockStoreInterface
{
    /** @var \WeakMap<Key, KeyHold> */
    private \WeakMap $holds;

    /** The state of a Key here: stores on other nodes have another. */
    private readonly string $stateKey;

    private readonly float $initialTtl;

    /** @param ?float $initialTtl seconds, of locks that createLock() gives no TTL; null: as long as the process runs */
    public function __construct(private readonly ClientInterface $client, ?float $initialTtl = null)
    {
        $initialTtl === null || self::checkTtl($initialTtl, __METHOD__);
        $this->initialTtl = $initialTtl ?? \INF;
        $this->holds = new \WeakMap();
        $nodes = \explode(',', $client->option('nodes'));
        \sort($nodes);
        $this->stateKey = self::class . '@' . \substr(\sha1(\implode(',', $nodes)), 0, 12);
    }

    public function save(Key $key): void
    {
        $this->acquire($key, 0, false);
    }

    public function waitAndSave(Key $key): void
    {
        $this->acquire($key, -1, false);
    }

    public function saveRead(Key $key): void
    {
        $this->acquire($key, 0, true);
    }

    public function waitAndSaveRead(Key $key): void
    {
        $this->acquire($key, -1, true);
    }

    public function putOffExpiration(Key $key, float $ttl): void
    {
        self::checkTtl($ttl, __METHOD__);
        $hold = $this->find($key) ?? throw new LockConflictedException("\"$key\" is not held by this key.");
        try {
            $this->expire($key, $hold, $ttl);
        } catch (LostException | NotHeldException $lost) {
            throw new LockConflictedException($lost->getMessage(), 0, $lost);
        }
    }

    public function delete(Key $key): void
    {
        $hold = $this->find($key);
        $this->forget($key);
        try {
            $hold?->hold->release();
        } catch (LostException | NotHeldException) {
            /* it is not held, which is what was asked for */
        } catch (RedlockThrowable $failure) {
            throw new LockReleasingException($failure->getMessage(), 0, $failure);
        }
    }

    /**
     * Asks the nodes, as another process may have continued and ended what this Key began; where they have no clear
     * answer, by what this process knows. Of several readers they name one: another Key that is held for reading, and
     * was not saved here, counts until its lifetime is over.
     */
    public function exists(Key $key): bool
    {
        $hold = $this->find($key);
        if ($hold === null || !$hold->mayStand()) {
            return false;
        }
        if (!$hold->isAdopted) { /* it may have been renewed */
            $key->resetLifetime();
            $key->reduceLifetime($hold->remaining());
        }
        try {
            $status = $this->client->status((string) $key);
        } catch (RedlockThrowable) {
            return $hold->hold->isHeld();
        }
        return match ($status->verdict) {
            Verdict::Held, Verdict::Free => \in_array($hold->token(),
                \array_column([$status, ...$status->parts], 'token'), true),
            Verdict::Shared => $status->token === $hold->token() || ($hold->isShared() && !$key->isExpired()),
            Verdict::Split, Verdict::Unknown => $hold->hold->isHeld(),
        };
    }

    private function acquire(Key $key, int $waitMs, bool $reads): void
    {
        $this->refuseExpired($key);
        $hold = $this->find($key);
        if ($hold !== null && $this->goesOn($key, $hold, $reads)) {
            return;
        }
        try {
            $hold = KeyHold::acquire($this->client, (string) $key, $this->initialTtl, $reads, $waitMs);
        } catch (BusyException $busy) {
            $this->forget($key);
            throw new LockConflictedException($busy->getMessage(), 0, $busy);
        } catch (InvalidOptionException $refused) {
            throw new InvalidArgumentException($refused->getMessage(), 0, $refused);
        } catch (RedlockThrowable $failure) {
            throw new LockAcquiringException($failure->getMessage(), 0, $failure);
        }
        $this->holds[$key] = $hold;
        $key->setState($this->stateKey, $hold->state());
        $key->reduceLifetime($hold->remaining());
        $this->refuseExpired($key);
    }

    /** What a Key holds is taken again, or from then on for reading; false: it had ended. */
    private function goesOn(Key $key, KeyHold $hold, bool $reads): bool
    {
        if ($hold->isShared() && !$reads && $hold->mayStand()) {
            throw new LockConflictedException("\"$key\" is held by this key for reading, which does not become "
                . 'writing: release it, and acquire it anew.');
        }
        try {
            if ($reads && !$hold->isShared()) {
                $hold->share();
                $key->setState($this->stateKey, $hold->state());
            }
            $this->expire($key, $hold, $this->initialTtl);
            return true;
        } catch (LostException | NotHeldException) {
            $this->discard($key); /* what is left of it would be in the way */
            return false;
        }
    }

    /** Sets what is left of the lease to exactly $ttl. */
    private function expire(Key $key, KeyHold $hold, float $ttl): void
    {
        try {
            $hold->expire($ttl);
            $key->reduceLifetime($hold->remaining());
        } catch (LostException | NotHeldException $lost) {
            throw $lost;
        } catch (InvalidOptionException $refused) {
            if (!$hold->isTooShort($ttl)) {
                throw new InvalidTtlException($refused->getMessage(), 0, $refused);
            }
            $this->discard($key);
            $key->reduceLifetime(0);
            throw new LockExpiredException("Failed to put off the expiration of the \"$key\" lock within $ttl s.", 0,
                $refused);
        } catch (RedlockThrowable $failure) {
            throw new LockAcquiringException($failure->getMessage(), 0, $failure);
        }
        $this->refuseExpired($key);
    }

    private function refuseExpired(Key $key): void
    {
        if ($key->isExpired()) {
            $this->discard($key);
            throw new LockExpiredException("Failed to store the \"$key\" lock: its lifetime is over.");
        }
    }

    private function discard(Key $key): void
    {
        try {
            $this->delete($key);
        } catch (LockReleasingException) {
            /* the keys end with their TTL */
        }
    }

    private function find(Key $key): ?KeyHold
    {
        if (!isset($this->holds[$key]) && $key->hasState($this->stateKey)) {
            try {
                $this->holds[$key] = KeyHold::adopted($this->client, (string) $key, $key->getState($this->stateKey));
            } catch (RedlockThrowable $refused) {
                throw new InvalidArgumentException($refused->getMessage(), 0, $refused);
            }
        }
        return $this->holds[$key] ?? null;
    }

    private function forget(Key $key): void
    {
        unset($this->holds[$key]);
        $key->removeState($this->stateKey);
    }

    private static function checkTtl(float $ttl, string $method): void
    {
        if (!($ttl > 0) || !\is_finite($ttl)) {
            throw new InvalidTtlException("$method() expects a strictly positive TTL, $ttl given.");
        }
    }
}
