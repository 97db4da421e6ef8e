<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests;

use PHPUnit\Framework\TestCase;
use Redlock\LockInterface;
use RedlockHyperf\Internal\KeptLocks;

/** Locks of programs that let the TTL do the unlocking pile up until then. */
final class KeptLocksTest extends TestCase
{
    private const MANY = 2000;

    private int $looks = 0;
    private bool $held = true;

    private function fill(KeptLocks $kept): void
    {
        $token = 0;
        $lock = $this->createMock(LockInterface::class);
        $lock->method('token')->willReturnCallback(static function () use (&$token): string {
            return 'token ' . ++$token;
        });
        $lock->method('isHeld')->willReturnCallback(function (): bool {
            $this->looks++;
            return $this->held;
        });
        for ($i = 0; $i < self::MANY; $i++) {
            $kept->add($lock);
        }
    }

    public function testOneMoreCostsTheSameHoweverManyThereAre(): void
    {
        $kept = new KeptLocks();
        $this->fill($kept);
        $this->assertLessThan(4 * self::MANY, $this->looks);
        $this->assertSame(self::MANY, $kept->count());
        $this->assertNotNull($kept->take('token 1'));
        $this->assertNull($kept->take('token 1'));
    }

    public function testThoseThatHaveLapsedGo(): void
    {
        $kept = new KeptLocks();
        $this->held = false;
        $this->fill($kept);
        $this->assertLessThan(100, $kept->count());
    }
}
