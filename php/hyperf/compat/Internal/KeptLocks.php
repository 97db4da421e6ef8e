<?php

declare(strict_types=1);

namespace RedlockHyperf\Internal;

use Redlock\HoldInterface;
use Redlock\Hyperf\Locks;

/** @internal Holds that are known by their tokens alone, until take() or their end. */
final class KeptLocks
{
    private const FIRST_SWEEP = 64;

    /** @var ?\WeakMap<Locks, self> */
    private static ?\WeakMap $all = null;

    /** @var array<string, HoldInterface> by token */
    private array $locks = [];
    private int $sweepAt = self::FIRST_SWEEP;

    /** One for all objects of the old class that share a Locks. */
    public static function of(Locks $locks): self
    {
        self::$all ??= new \WeakMap();
        return self::$all[$locks] ??= new self();
    }

    public function add(HoldInterface $hold): void
    {
        $this->locks[$hold->token()] = $hold;
        if (\count($this->locks) >= $this->sweepAt) {
            $this->locks = \array_filter($this->locks, static fn (HoldInterface $other): bool => $other->isHeld());
            $this->sweepAt = \max(self::FIRST_SWEEP, 2 * \count($this->locks)); /* few sweeps, however many there are */
        }
    }

    public function take(string $token): ?HoldInterface
    {
        $lock = $this->locks[$token] ?? null;
        unset($this->locks[$token]);
        return $lock;
    }

    public function count(): int
    {
        return \count($this->locks);
    }
}
