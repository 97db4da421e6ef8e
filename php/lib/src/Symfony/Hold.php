<?php

declare(strict_types=1);

namespace Redlock\Symfony;

use Redlock\ClientInterface;
use Redlock\LockInterface;

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

    private function __construct(
        public readonly LockInterface $lock,
        public bool $isAdopted,
        private bool $isShared,
    ) {
        $this->taken();
    }

    public static function new(ClientInterface $client, string $resource, float $ttl, bool $isShared): self
    {
        $options = self::options($client, $ttl, 0) + ['shared' => $isShared];
        return new self($client->lockFromArray($resource, $options), false, $isShared);
    }

    public static function adopted(ClientInterface $client, string $resource, string $state): self
    {
        $isShared = \str_starts_with($state, self::READS);
        $token = $isShared ? \substr($state, \strlen(self::READS)) : $state;
        return new self($client->adopt($resource, $token, shared: $isShared), true, $isShared);
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

    public function taken(): void
    {
        $this->takenMs = self::nowMs();
    }

    public function expire(ClientInterface $client, float $ttl): void
    {
        $options = self::options($client, $ttl, (int) \ceil(self::nowMs() - $this->takenMs));
        $this->lock->set('renew', $options['renew']);
        $this->lock->set('max_hold_ms', $options['max_hold_ms']);
        $this->lock->expire($options['ttl_ms']);
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

    /** @return array{ttl_ms: int, renew: bool, max_hold_ms: int} of a lease, $afterMs after the lock was taken */
    private static function options(ClientInterface $client, float $ttl, int $afterMs): array
    {
        $wantedMs = (int) \min(\ceil($ttl * 1000), \PHP_INT_MAX >> 1);
        $longestMs = (int) $client->option('max_ttl_ms');
        return $wantedMs > $longestMs
            ? ['ttl_ms' => $longestMs, 'renew' => true, 'max_hold_ms' => $afterMs + $wantedMs]
            : ['ttl_ms' => $wantedMs, 'renew' => false, 'max_hold_ms' => -1];
    }

    private static function nowMs(): float
    {
        return \hrtime(true) / 1e6;
    }

    public function __destruct()
    {
        if ($this->lock->isHeld()) {
            $this->lock->detach();
        }
    }
}
