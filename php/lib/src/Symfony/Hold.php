<?php

declare(strict_types=1);

namespace Redlock\Symfony;

use Redlock\Lease;
use Redlock\Lock;

/**
 * @internal What a Key holds. symfony/lock releases when its own Lock object goes, unless autoRelease is off; a Key
 * that goes without a release leaves its lock at the nodes.
 */
final class Hold
{
    private float $takenMs;

    public function __construct(public readonly Lock $lock, public bool $adopted = false)
    {
        $this->taken();
    }

    public function taken(): void
    {
        $this->takenMs = self::nowMs();
    }

    public function extend(Lease $lease): void
    {
        $untilMs = (int) (self::nowMs() - $this->takenMs) + $lease->holdMs;
        $this->lock->set('max_hold_ms', $lease->isRenewed() ? (string) $untilMs : '-1');
        $this->lock->set('max_extensions', '-1');
        $this->lock->set('renew', $lease->isRenewed() ? 'true' : 'false');
        $this->lock->extend($lease->ttlMs);
        $this->adopted = false;
    }

    /** Seconds: of the lease, or of the whole time for which it is renewed. */
    public function remaining(float $ttl): float
    {
        $lease = $this->lock->remainingMs() / 1000;
        return $this->lock->isRenewed() ? \max($lease, $ttl) : $lease;
    }

    private static function nowMs(): float
    {
        return \hrtime(true) / 1e6;
    }

    public function __destruct()
    {
        if ($this->lock->isHeld() || ($this->adopted && !$this->lock->isLost())) {
            $this->lock->detach();
        }
    }
}
