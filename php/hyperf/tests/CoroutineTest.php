<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests;

use Redlock\Exception\LostException;
use Redlock\Hyperf\CancelOnLoss;
use Redlock\Hyperf\LockedCall;
use Redlock\Hyperf\Locks;
use Redlock\Hyperf\LockSpec;
use Redlock\Tests\NodesTestCase;
use RedlockHyperf\Internal\CoroutineSettings;
use RedlockHyperf\RedLock;
use Swoole\Coroutine;

/** What the component does in coroutines, without the framework. */
final class CoroutineTest extends NodesTestCase
{
    private Locks $locks;

    protected function setUp(): void
    {
        if (!\extension_loaded('swoole')) {
            $this->markTestSkipped('the extension swoole is not installed');
        }
        parent::setUp();
        $pools = [];
        foreach (self::cluster()->nodes as $i => $node) {
            $pools["r$i"] = ['host' => '127.0.0.1', 'port' => $node->port];
        }
        $this->locks = new Locks(['default' => ['nodes' => \array_keys($pools)] + $this->config()], $pools);
    }

    /** @param \Closure(): mixed ...$bodies at the same time */
    private function inCoroutines(\Closure ...$bodies): void
    {
        $failure = null;
        Coroutine\run(static function () use ($bodies, &$failure): void {
            foreach ($bodies as $body) {
                Coroutine::create(static function () use ($body, &$failure): void {
                    try {
                        $body();
                    } catch (\Throwable $failure) {
                    }
                });
            }
        });
        $failure === null || throw $failure;
    }

    private function call(LockSpec $spec, \Closure $body): mixed
    {
        return (new LockedCall($this->locks, 'Orders::pay', [], [], null, $body))->run([$spec]);
    }

    public function testSettingsAreNotThoseOfAnObjectThatIsGone(): void
    {
        $this->inCoroutines(function (): void {
            for ($i = 0; $i < 100; $i++) {
                $settings = new CoroutineSettings();
                $this->assertSame('none', $settings->get('pools', 'none'));
                $settings->set('pools', "of $i");
                $this->assertSame("of $i", $settings->get('pools', 'none'));
                unset($settings); /* the next one may get its id */
            }
        });
    }

    public function testSettingsBelongToTheCoroutineThatMakesThem(): void
    {
        $settings = new CoroutineSettings();
        $this->inCoroutines(function () use ($settings): void {
            $settings->set('pools', 'first');
            Coroutine::sleep(0.01);
            $this->assertSame('first', $settings->get('pools', 'none'));
        }, function () use ($settings): void {
            $settings->set('pools', 'second');
            Coroutine::sleep(0.01);
            $this->assertSame('second', $settings->get('pools', 'none'));
        }, function () use ($settings): void {
            $this->assertSame('first', $settings->get('pools', 'none'));
        });
    }

    public function testAnObjectWithoutSettingsLocksOnTheConfiguredNodes(): void
    {
        $this->inCoroutines(function (): void {
            for ($i = 0; $i < 3; $i++) {
                (new RedLock($this->locks))->setRedisPoolName(['r0']);
                $lock = (new RedLock($this->locks))->lock("fresh$i", 30000);
                $this->assertGreaterThanOrEqual(3, self::cluster()->keys()["fresh$i"]);
                (new RedLock($this->locks))->unlock($lock);
            }
        });
    }

    public function testEachCoroutineHasItsOwnCurrentLock(): void
    {
        $bodies = \array_map(fn (string $name): \Closure => function () use ($name): void {
            $this->call(new LockSpec($name), function () use ($name): void {
                Coroutine::sleep(0.01);
                $this->assertSame($name, Locks::current()->resource);
                Coroutine::create(fn () => $this->assertNull(Locks::current()));
            });
            $this->assertNull(Locks::current());
        }, ['a', 'b', 'c']);
        $this->inCoroutines(...$bodies);
    }

    public function testABodyWhoseLockIsLostIsCancelled(): void
    {
        $this->needCancel();
        $ended = false;
        $this->inCoroutines(function () use (&$ended): void {
            try {
                $this->call(new LockSpec('x', ['ttl_ms' => 300, 'node_timeout_ms' => 50, 'renew' => false],
                    onLost: 'cancel'), static function () use (&$ended): void {
                        Coroutine::sleep(60);
                        $ended = true;
                    });
                $this->fail('the body went on');
            } catch (LostException $lost) {
                $this->assertStringStartsWith('the call was cancelled: the lock was lost: the lease expired',
                    $lost->getMessage());
                $this->assertSame('x', $lost->resource);
            }
            $this->assertNull(Locks::current());
            $this->assertSame('y', $this->call(new LockSpec('y'), static fn (): string => Locks::current()->resource));
        });
        $this->assertFalse($ended);
        $this->assertNothingIsLeft();
    }

    public function testALossBeforeTheEndOfTheLeaseIsNoticed(): void
    {
        $this->needCancel();
        $this->inCoroutines(function (): void {
            $this->expectException(LostException::class);
            $this->expectExceptionMessageMatches('/^the call was cancelled.*the token was gone on \d of 5 nodes/');
            $this->call(new LockSpec('x', ['ttl_ms' => 3000, 'node_timeout_ms' => 500], onLost: 'cancel'),
                static function (): void {
                    self::cluster()->reset(); /* renewals find the token gone */
                    Coroutine::sleep(60);
                });
        });
    }

    public function testNothingIsCancelledThatHoldsItsLock(): void
    {
        $this->needCancel();
        $this->inCoroutines(function (): void {
            $seen = $this->call(new LockSpec('x', onLost: 'cancel'), static function (): string {
                Coroutine::sleep(0.2);
                return 'done';
            });
            $this->assertSame('done', $seen);
            $released = $this->call(new LockSpec('x', onLost: 'cancel'), static function (): string {
                Locks::current()->release();
                Coroutine::sleep(0.2);
                return 'released';
            });
            $this->assertSame('released', $released);
        });
        $this->assertNothingIsLeft();
    }

    private function needCancel(): void
    {
        if (!CancelOnLoss::isPossible()) {
            $this->markTestSkipped('the extension swoole is not installed');
        }
    }
}
