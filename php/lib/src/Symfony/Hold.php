<?php

declare(strict_types=1);

namespace Redlock\Symfony;

use Redlock\ClientInterface;
use Redlock\LockInterface;
use Redlock\LongLease;

/**
 * @internal What a Key holds. symfony/lock releases when its own Lock object goes, unless autoRelease is off; a Key
 * that goes without a release leaves its lock at the nodes.
 */
final class Hold
{
    /** No lock can be held for less. */
    private const SHORTEST_MS = 20;

    /** What the state of a Key that is held for reading begins with. */
    private const READS = 'read:';

    private float $takenMs;
    private ?LongLease $lease = null;

    private function __construct(
        private readonly ClientInterface $client,
        public readonly LockInterface $lock,
        public bool $isAdopted,
        private bool $isShared,
    ) {
        $this->takenMs = self::nowMs();
    }

    public static function new(ClientInterface $client, string $resource, float $ttl, bool $isShared): self
    {
        $options = LongLease::options($client, $ttl * 1000) + ['shared' => $isShared];
        return new self($client, $client->lockFromArray($resource, $options), false, $isShared);
    }

    public static function adopted(ClientInterface $client, string $resource, string $state): self
    {
        $isShared = \str_starts_with($state, self::READS);
        $token = $isShared ? \substr($state, \strlen(self::READS)) : $state;
        return new self($client, $client->adopt($resource, $token, shared: $isShared), true, $isShared);
    }

    /** What a Key carries. */
    public function state(): string
    {
        return ($this->isShared ? self::READS : '') . $this->token();
    }

    public function isShared(): bool
    {
        return $this->isShared;
    }

    /** The next expire() lets other readers in. */
    public function share(): void
    {
        $this->lock->set('shared', true);
        $this->isShared = true;
    }

    /** Not known to be over. */
    public function mayStand(): bool
    {
        return $this->isAdopted || $this->lock->isHeld();
    }

    public function taken(float $ttl): void
    {
        $this->takenMs = self::nowMs();
        $this->lease = new LongLease($this->client, $ttl * 1000);
    }

    public function expire(float $ttl): void
    {
        $options = LongLease::options($this->client, $ttl * 1000, self::nowMs() - $this->takenMs);
        $this->lock->set('renew', $options['renew']);
        $this->lock->set('max_hold_ms', $options['max_hold_ms']);
        $this->lock->expire($options['ttl_ms']);
        $this->lease = new LongLease($this->client, $ttl * 1000);
        $this->isAdopted = false;
    }

    public function isTooShort(float $ttl): bool
    {
        return $ttl * 1000 < self::SHORTEST_MS;
    }

    public function token(): string
    {
        return $this->lock->token();
    }

    /** Seconds that the nodes hold it without anybody's doing. */
    public function remaining(): float
    {
        return $this->lock->remainingMs() / 1000;
    }

    private static function nowMs(): float
    {
        return \hrtime(true) / 1e6;
    }

    public function __destruct()
    {
        $this->lease?->leave($this->lock);
    }
}
