<?php

declare(strict_types=1);

namespace Redlock;

/**
 * One term of a leader: it lasts until the body of Election::run() ends or the lock is lost. From the loss on somebody
 * else may lead, whatever the body does: it asks isLost(), or calls check() before what cannot be undone.
 */
final class Term
{
    /** @internal Election makes terms. */
    public function __construct(private readonly LockInterface $lock)
    {
    }

    public function resource(): string
    {
        return $this->lock->resource();
    }

    /** The number of the term, larger than that of every leader before. */
    public function fence(): int
    {
        return (int) $this->lock->fence();
    }

    /** How much longer it may lead without a renewal; 0 after a loss. */
    public function remainingMs(): int
    {
        return $this->lock->remainingMs();
    }

    public function isLost(): bool
    {
        return $this->lock->isLost();
    }

    /** @throws Exception\LostException it leads no more; the body may let it pass: then it stands by again */
    public function check(): void
    {
        if (!$this->lock->isHeld()) {
            $lost = new Exception\LostException("\"{$this->resource()}\": the term is over: {$this->lock->message()}");
            $lost->resource = $this->resource();
            throw $lost;
        }
    }
}
