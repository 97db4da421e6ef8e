<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests;

use Redlock\Hyperf\Locks;
use Redlock\Tests\MemoryLogger;
use Redlock\Tests\NodesTestCase;
use Redlock\Tests\Wait;
use RedlockHyperf\Annotation\RedLockAnnotation;
use RedlockHyperf\Exception\RedLockException;
use RedlockHyperf\RedLock;

require_once __DIR__ . '/hyperf.php';

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

    public function testALockIsTakenAndUnlockedAsBefore(): void
    {
        $redlock = new RedLock($this->locks);
        $lock = $redlock->setRedisPoolName(['r0', 'r1', 'r2', 'r3', 'r4'])->setRetryCount(50)->setRetryDelay(
            100)->setClockDriftFactor(0.01)->lock('old', 30000);
        $this->assertSame(['validity', 'resource', 'token'], \array_keys($lock));
        $this->assertSame('old', $lock['resource']);
        $this->assertIsFloat($lock['validity']);
        $this->assertGreaterThan(20000.0, $lock['validity']); /* one lease, as long as asked for */
        $this->assertLessThan(29700.0, $lock['validity']);
        $this->assertFalse($redlock->setRetryCount(1)->lock('old', 1000));
        $this->assertTrue($redlock->unlock($lock));
        $this->assertNothingIsLeft();
        $this->assertFalse($redlock->unlock($lock));
    }

    /** The first example of redlock-hyperf, with the options that there are by default. */
    public function testATtlAboveTheLongestLeaseIsRenewedAndUnlocked(): void
    {
        $redlock = new RedLock($this->locks);
        $lock = $redlock->lock('redlock-hyperf-test', 60000);
        $this->assertSame('redlock-hyperf-test', $lock['resource']);
        $this->assertLessThan(30000.0, $lock['validity'], 'the nodes hold no more');
        $this->assertFalse((new RedLock($this->locks))->lock('redlock-hyperf-test', 60000));
        $this->assertTrue($redlock->unlock($lock));
        $this->assertTrue($redlock->unlock($redlock->lock('two days', 172_800_000)));
        $this->assertNothingIsLeft();
    }

    public function testALongTtlEndsWithItself(): void
    {
        self::cluster()->bootstrap(maxTtlMs: 4000);
        $redlock = new RedLock(new Locks(['default' => ['max_ttl_ms' => 4000, 'node_timeout_ms' => 'auto',
            'ttl_ms' => 4000, 'client_name' => 'long'] + $this->config()], []));
        $begun = \hrtime(true);
        [$minute, $seconds] = [$redlock->lock('minute', 60000), $redlock->lock('seconds', 6000)];
        Wait::until(static fn (): bool => \hrtime(true) - $begun > 8e9, 'two leases');
        $this->assertSame([true, false], [$redlock->unlock($minute), $redlock->unlock($seconds)]);
        $this->assertNothingIsLeft();
    }

    /** @dataProvider ends */
    public function testWhatIsHeldAtTheEndIsLeftToItsTtlAndALongOneIsWarnedOf(\Closure $end): void
    {
        $log = new MemoryLogger();
        $locks = new Locks(['default' => ['client_name' => 'end'] + $this->config()], [], $log);
        foreach (['short' => 20000, 'long' => 60000, 'unlocked' => 60000] as $name => $ttl) {
            $held = (new RedLock($locks))->lock($name, $ttl);
        }
        (new RedLock($locks))->unlock($held);
        $end($locks);
        unset($locks);
        \gc_collect_cycles();
        $warned = \array_filter($log->records, static fn (array $one): bool => \str_contains($one[1], 'was wanted'));
        $this->assertSame(['long'], \array_values(\array_map(static fn (array $one): string => $one[2]['resource'],
            $warned)));
        Wait::until(static fn (): bool => !isset(self::cluster()->keys()['unlocked']), 'the other to be released');
        $this->assertEqualsCanonicalizing(['short', 'long'], \array_keys(self::cluster()->keys()));
    }

    public static function ends(): array
    {
        return ['of a worker' => [static fn (Locks $locks) => $locks->close()],
            'of a script' => [static fn () => null]];
    }

    public function testASubclassOverridesWithTheOldSignatures(): void
    {
        self::cluster()->bootstrap(3);
        $redlock = new TracedRedLock($this->locks);
        $redlock->setRedisPoolName(['r0', 'r1', 'r2'])->setRetryDelay(100)->setRetryCount(1)->setClockDriftFactor(0.01);
        $lock = $redlock->lock(42, 20000);
        $this->assertSame('42', $lock['resource']);
        $this->assertTrue($redlock->unlock($lock));
        $this->assertSame(['setRedisPoolName', 'setRetryDelay', 'setRetryCount', 'setClockDriftFactor', 'lock',
            'unlock'], $redlock->called);
        $this->expectException(RedLockException::class);
        $this->expectExceptionMessage('resource must be a text, array given');
        $redlock->lock(['x'], 20000);
    }

    public function testASubclassOfTheAnnotationHasItsOwnDefaults(): void
    {
        $spec = (new OrderLock())->spec();
        $this->assertSame(['order', ['r0', 'r1', 'r2'], 5000, 0.02],
            [$spec->resource, $spec->pools, $spec->options['ttl_ms'], $spec->options['drift_factor']]);
        $spec = (new OrderLock('stock', ttl: 7000))->spec();
        $this->assertSame(['stock', 7000], [$spec->resource, $spec->options['ttl_ms']]);
    }

    public function testAnAnnotationWithoutATtlHasThatOfTheClient(): void
    {
        $this->assertArrayNotHasKey('ttl_ms', (new RedLockAnnotation('x'))->spec()->options);
        $this->assertSame(20000, (new RedLockAnnotation('x', ttl: 20000))->spec()->options['ttl_ms']);
    }

    public function testAnObjectWithoutSettingsUsesTheConfiguration(): void
    {
        $lock = (new RedLock($this->locks))->lock('config', 20000);
        $this->assertGreaterThanOrEqual(3, self::cluster()->keys()['config']);
        $this->assertTrue((new RedLock($this->locks))->unlock($lock)); /* another object adopts the token */
        $this->assertNothingIsLeft();
    }

    public function testTheRetryCountIsTheNumberOfAttempts(): void
    {
        $redlock = new RedLock($this->locks);
        $held = $redlock->lock('attempts', 10000);
        $this->assertIsArray($held);
        $begun = \hrtime(true);
        $this->assertFalse($redlock->setRetryCount(3)->setRetryDelay(100)->lock('attempts', 10000));
        $pausesMs = (\hrtime(true) - $begun) / 1e6;
        $this->assertGreaterThanOrEqual(95, $pausesMs); /* two pauses of 50 ms or more */
        $this->assertFalse($redlock->setRetryDelay(-5)->lock('attempts', 10000));
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

    public function testUnknownPoolsAreRefused(): void
    {
        $this->expectException(RedLockException::class);
        $this->expectExceptionMessage('no redis pool "nothing"');
        (new RedLock($this->locks))->setRedisPoolName(['nothing']);
    }

    public function testAPoolNamedTwiceIsOneNode(): void
    {
        self::cluster()->bootstrap(1);
        $redlock = (new RedLock($this->locks))->setRedisPoolName(['r0', 'r0']);
        $lock = $redlock->lock('twice', 20000);
        $this->assertSame(['twice' => 1], self::cluster()->keys());
        $this->assertTrue($redlock->unlock($lock));
        $this->assertSame(['r0', 'r1'], (new RedLockAnnotation('x', ['r0', 'r1', 'r0']))->spec()->pools);
    }

    /** As the old class made them: host name, uniqid, time. */
    public function testATokenOfTheOldClassIsUnlocked(): void
    {
        $token = 'shop-1_655f0c1d7a3b12.34567890';
        foreach (self::cluster()->nodes as $node) {
            $node->command('SET', 'old', $token, 'PX', '30000');
        }
        $redlock = new RedLock($this->locks);
        $this->assertFalse($redlock->unlock(['resource' => 'old', 'token' => 'another']));
        $this->assertSame(['old' => 5], self::cluster()->keys());
        $this->assertTrue($redlock->unlock(['resource' => 'old', 'token' => $token, 'validity' => 29000.5]));
        $this->assertNothingIsLeft();
    }

    public function testUnlockRefusesWhatLockDidNotReturn(): void
    {
        $wrong = ['unlock() takes what lock() returned' => [],
            'token must not contain' => ['resource' => 'x', 'token' => "a\0b"]];
        foreach ($wrong as $words => $lock) {
            try {
                (new RedLock($this->locks))->unlock($lock);
                $this->fail("not refused: $words");
            } catch (RedLockException $refused) {
                $this->assertStringContainsString($words, $refused->getMessage());
            }
        }
    }

    public function testValuesAreRefusedInTheNamesOfTheOldClass(): void
    {
        $wrong = ['ttl is "5"; allowed: 20 to' => ['x', 0.01, 5],
            'clockDriftFactor is "0.5"; allowed' => ['x', 0.5, 20000], 'resource has 0 bytes' => ['', 0.01, 20000]];
        foreach ($wrong as $words => [$resource, $drift, $ttl]) {
            try {
                (new RedLock($this->locks))->setClockDriftFactor($drift)->lock($resource, $ttl);
                $this->fail("not refused: $words");
            } catch (RedLockException $refused) {
                $this->assertStringContainsString($words, $refused->getMessage());
            }
        }
    }
}
