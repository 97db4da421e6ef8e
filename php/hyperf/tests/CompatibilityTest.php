<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests;

use Redlock\Hyperf\Locks;
use Redlock\Tests\NodesTestCase;
use RedlockHyperf\Exception\RedLockException;
use RedlockHyperf\RedLock;

/** The object of redlock-hyperf: the same methods and shapes. */
final class CompatibilityTest extends NodesTestCase
{
    private Locks $locks;

    protected function setUp(): void
    {
        parent::setUp();
        $pools = [];
        foreach (self::cluster()->nodes as $i => $node) {
            $pools["r$i"] = ['host' => '127.0.0.1', 'port' => $node->port];
        }
        $this->locks = new Locks(['default' => ['nodes' => \array_keys($pools)] + $this->config()], $pools);
    }

    public function testLockAndUnlock(): void
    {
        $redlock = new RedLock($this->locks);
        $lock = $redlock->setRedisPoolName(['r0', 'r1', 'r2', 'r3', 'r4'])->setRetryCount(50)->setRetryDelay(
            100)->setClockDriftFactor(0.01)->lock('old', 60000);
        $this->assertSame(['validity', 'resource', 'token'], \array_keys($lock));
        $this->assertSame('old', $lock['resource']);
        $this->assertGreaterThan(20000, $lock['validity']);
        $this->assertFalse($redlock->setRetryCount(1)->lock('old', 1000));
        $this->assertTrue($redlock->unlock($lock));
        $this->assertNothingIsLeft();
        $this->assertFalse($redlock->unlock($lock));
    }

    public function testAnObjectWithoutSettingsUsesTheConfiguration(): void
    {
        $lock = (new RedLock($this->locks))->lock('config', 20000);
        $this->assertGreaterThanOrEqual(3, self::cluster()->keys()['config']);
        $this->assertTrue((new RedLock($this->locks))->unlock($lock)); /* another object adopts the token */
        $this->assertNothingIsLeft();
    }

    public function testTheNumberOfAttempts(): void
    {
        $redlock = new RedLock($this->locks);
        $held = $redlock->lock('attempts', 10000);
        $this->assertIsArray($held);
        $begun = \hrtime(true);
        $this->assertFalse($redlock->setRetryCount(3)->setRetryDelay(100)->lock('attempts', 10000));
        $pausesMs = (\hrtime(true) - $begun) / 1e6;
        $this->assertGreaterThanOrEqual(95, $pausesMs); /* two pauses of 50 ms or more */
    }

    public function testWantOfNodesIsFalseAndWrongValuesAreTheirException(): void
    {
        foreach ([0, 1, 2] as $i) {
            self::cluster()->nodes[$i]->kill();
        }
        $redlock = new RedLock($this->locks);
        $this->assertFalse($redlock->lock('nobody', 20000));
        $this->expectException(RedLockException::class);
        $redlock->lock('ttl', -5);
    }

    public function testUnknownPools(): void
    {
        $this->expectException(RedLockException::class);
        $this->expectExceptionMessage('no redis pool "nothing"');
        (new RedLock($this->locks))->setRedisPoolName(['nothing'])->lock('x', 1000);
    }
}
