<?php

declare(strict_types=1);

namespace Redlock\Symfony;

use Redlock\ClientInterface;
use Redlock\Hold;
use Redlock\LongLease;

/**
 * @internal What a Key holds. symfony/lock releases when its own Lock object goes, unless autoRelease is off; a Key
 * that goes without a release leaves its lock at the nodes.
 */
final class KeyHold
{
    /** No lock can be held for less. */
    private const SHORTEST_MS = 20;

    /** What the state of a Key that is held for reading begins with. */
    private const READS = 'read:';

    private readonly float $takenMs;
    private ?LongLease $lease = null;

    private function __construct(
        private readonly ClientInterface $client,
        public readonly Hold $hold,
        public bool $isAdopted,
        private bool $isShared,
    ) {
        $this->takenMs = LongLease::nowMs($client);
    }

    public static function acquire(
        ClientInterface $client,
        string $resource,
        float $ttl,
        bool $isShared,
        int $waitMs,
    ): self {
        $options = LongLease::options($client, $ttl * 1000) + ['shared' => $isShared];
        $held = new self($client, $client->lockFromArray($resource, $options)->acquire($waitMs), false, $isShared);
        $held->lease = new LongLease($client, $ttl * 1000);
        return $held;
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
        $this->hold->set('shared', 'true');
        $this->isShared = true;
    }

    /** Not known to be over. */
    public function mayStand(): bool
    {
        return $this->isAdopted || $this->hold->isHeld();
    }

    public function expire(float $ttl): void
    {
        $options = LongLease::options($this->client, $ttl * 1000, LongLease::nowMs($this->client) - $this->takenMs);
        $renew = $this->hold->set('renew', $options['renew'] ? 'true' : 'false');
        $maxHoldMs = $this->hold->set('max_hold_ms', (string) $options['max_hold_ms']);
        try {
            $this->hold->expire($options['ttl_ms']);
        } catch (\Throwable $failure) { /* it goes on as before */
            \array_map($this->hold->set(...), ['renew', 'max_hold_ms'], [$renew, $maxHoldMs]);
            throw $failure;
        }
        $this->lease = new LongLease($this->client, $ttl * 1000);
        $this->isAdopted = false;
    }

    public function isTooShort(float $ttl): bool
    {
        return $ttl * 1000 < self::SHORTEST_MS;
    }

    public function token(): string
    {
        return $this->hold->token();
    }

    /** Seconds that the nodes hold it without anybody's doing. */
    public function remaining(): float
    {
        return $this->hold->remainingMs() / 1000;
    }

    public function __destruct()
    {
        $this->lease?->leave($this->hold);
    }
}
