<?php

declare(strict_types=1);

namespace Redlock\Tests;

use Redlock\Client;
use Redlock\Exception\CancelledException;
use Redlock\Exception\ForkedException;
use Redlock\Exception\LostException;
use Redlock\Exception\NotHeldException;
use Redlock\Hold;
use Redlock\Term;
use Redlock\Testing\MemoryClient;

/** Each acquisition is a hold of its own, which never speaks of another one and never acts for it. */
final class HoldsTest extends NodesTestCase
{
    private const SHORT = ['ttlMs' => 1000, 'nodeTimeoutMs' => 200, 'renew' => false];

    private StreamSelectLoop $loop;

    protected function setUp(): void
    {
        parent::setUp();
        $this->loop = new StreamSelectLoop();
    }

    /** As Wait::until, but other Fibers go on. */
    private function delayUntil(\Closure $condition): void
    {
        for ($end = \microtime(true) + 30; !$condition(); $this->loop->delay(1)) {
            \microtime(true) < $end || throw new \RuntimeException('waited 30 s in vain');
        }
    }

    /** @return class-string<\Throwable>|null */
    private static function thrown(\Closure $call): ?string
    {
        try {
            $call();
            return null;
        } catch (\Throwable $failure) {
            return $failure::class;
        }
    }

    public function testALateFiberIsNotItsSuccessor(): void
    {
        $lock = $this->client(loop: $this->loop)->lock('account', ...self::SHORT, fence: true);
        $seen = new \stdClass();
        $seen->late = $seen->next = null;
        [$told] = $this->loop->run([
            function () use ($lock, $seen): array {
                try {
                    $lock->run(function (Hold $hold) use ($seen): never {
                        [$seen->late, $fence] = [$hold, $hold->fence()];
                        $this->delayUntil(static fn (): bool => $seen->next !== null); /* its lease ends meanwhile */
                        $this->assertSame($fence, $hold->fence());
                        throw new \DomainException($hold->isLost() ? 'late' : 'not told');
                    });
                } catch (\DomainException $mine) {
                    $acts = [$seen->late->release(...), $seen->late->extend(...), $seen->late->detach(...)];
                    return [$mine->getMessage(), \array_map(self::thrown(...), $acts), $seen->late->isHeld()];
                }
            },
            function () use ($lock, $seen): void {
                $this->delayUntil(static fn (): bool => $seen->late !== null);
                $seen->next = $lock->acquire();
                $seen->next->extend(20000);
            },
        ]);
        $this->assertSame(['late', \array_fill(0, 3, LostException::class), false], $told);
        $this->assertTrue($seen->next->isHeld());
        $this->assertGreaterThan($seen->late->fence(), $seen->next->fence());
        $this->assertSame($seen->next->token(), $this->client()->status('account')->token);
    }

    /** @dataProvider kinds */
    public function testAServiceThatTwoFibersCallExcludesThem(bool $isReentrant): void
    {
        $lock = $this->client(loop: $this->loop)->lock('stock', reentrant: $isReentrant);
        $inside = $most = 0;
        $call = function () use ($lock, $isReentrant, &$inside, &$most): void {
            $body = function () use (&$inside, &$most): void {
                $most = \max($most, ++$inside);
                $this->loop->delay(5);
                $inside--;
            };
            for ($i = 0; $i < 5; $i++) {
                $lock->run(static fn (): mixed => $isReentrant ? $lock->run($body) : $body());
            }
        };
        $this->loop->run([$call, $call, $call]);
        $this->assertSame(1, $most);
        $this->assertNothingIsLeft();
    }

    public static function kinds(): array
    {
        return ['plain' => [false], 'reentrant' => [true]];
    }

    /** @dataProvider kinds */
    public function testWhatAnEndedFiberHasLostIsTakenAnew(bool $isReentrant): void
    {
        $lock = $this->client(loop: $this->loop)->lock('stock', ...self::SHORT, reentrant: $isReentrant);
        $seen = new \stdClass();
        $this->loop->run([static fn (): Hold => $seen->late = $lock->acquire()]);
        $this->loop->run([fn () => $this->delayUntil(static fn (): bool => $seen->late->isLost())]);
        $this->loop->run([static fn (): Hold => $seen->next = $lock->acquire()]);
        $this->assertNotSame($seen->late, $seen->next);
        $seen->next->extend(20000);
        $this->loop->run([static fn () => $lock->release()]);
        $this->assertFalse($seen->next->isHeld());
        $this->assertNothingIsLeft();
    }

    public function testABodyThatIsLateEndsWithItsLossAndLetsNobodyIn(): void
    {
        $lock = $this->client(loop: $this->loop)->lock('account', ...self::SHORT);
        $third = $this->client()->lock('account');
        $seen = new \stdClass();
        $seen->isIn = false;
        $seen->late = null;
        $this->loop->run([
            function () use ($lock, $seen): void {
                $seen->late = self::thrown(fn () => $lock->run(
                    fn () => $this->delayUntil(static fn (): bool => $seen->isIn)));
            },
            fn () => $lock->run(function (Hold $hold) use ($third, $seen): void {
                $hold->extend(20000);
                $seen->isIn = true;
                $this->delayUntil(static fn (): bool => $seen->late !== null);
                $this->assertFalse($third->tryAcquire());
            }),
        ]);
        $this->assertSame(LostException::class, $seen->late);
    }

    public function testALockThatIsDroppedIsReleasedWithoutTheCollector(): void
    {
        \gc_disable();
        try {
            foreach ([$this->client(), $this->client(loop: $this->loop)] as $client) {
                $lock = $client->lock('dropped', renew: true);
                $lock->acquire();
                unset($lock);
                $this->assertNothingIsLeft();
                $lock = $client->lock('dropped');
                $hold = $lock->acquire();
                unset($lock);
                $this->assertSame(['dropped'], \array_keys(self::cluster()->keys()), 'the hold goes on');
                $this->assertTrue($hold->isHeld());
                unset($hold);
                $this->assertNothingIsLeft();
            }
        } finally {
            \gc_enable();
        }
    }

    /** @dataProvider clients */
    public function testWhatHasEndedStaysEnded(\Closure $make): void
    {
        $client = $make($this);
        foreach (['release', 'detach'] as $end) {
            $lock = $client->lock($end);
            $over = $lock->acquire();
            $token = $over->token();
            $over->{$end}();
            $end === 'detach' && $client->adopt($end, $token)->release();
            $next = $lock->acquire(5000);
            $calls = [$over->release(...), $over->extend(...), $over->expire(...), $over->downgrade(...),
                $over->detach(...), $over->check(...)];
            $this->assertSame(\array_fill(0, 6, NotHeldException::class), \array_map(self::thrown(...), $calls));
            $this->assertSame([false, false, 0, $token],
                [$over->isHeld(), $over->isLost(), $over->remainingMs(), $over->token()]);
            $this->assertTrue($next->isHeld());
            $this->assertSame($next->token(), $client->status($end)->token);
            $next->release();
        }
    }

    public static function clients(): array
    {
        return ['nodes' => [static fn (self $test): Client => $test->client()],
            'memory' => [static fn (): MemoryClient => new MemoryClient()]];
    }

    public function testALostHoldTouchesNoOther(): void
    {
        $client = $this->client();
        $late = $client->lock('lost', ...self::SHORT)->acquire();
        $next = $client->lock('lost')->acquire(-1);
        $this->assertTrue($late->isLost());
        foreach (['extend', 'expire', 'downgrade', 'detach', 'check', 'release', 'release', 'extend'] as $act) {
            $this->assertSame(LostException::class, self::thrown(static fn () => $late->{$act}()), $act);
        }
        $this->assertSame($next->token(), $client->status('lost')->token);
        $next->check();
        $next->release();
        $this->assertNothingIsLeft();
    }

    public function testAHoldThatHasEndedSaysSo(): void
    {
        $released = $this->client()->lock('ended')->acquire();
        $released->release();
        $detached = $this->client()->lock('handed')->acquire();
        $detached->detach();
        foreach ([$released, $detached] as $hold) {
            foreach (['release', 'extend', 'expire', 'downgrade', 'detach', 'check'] as $act) {
                try {
                    $hold->{$act}();
                    $this->fail("$act acts on what has ended");
                } catch (NotHeldException $over) {
                    $this->assertSame("\"{$hold->resource()}\" is not held: this hold of it has ended",
                        $over->getMessage(), $act);
                }
            }
        }
    }

    public function testTheLockMeansTheCallersOwnHold(): void
    {
        $lock = $this->client(loop: $this->loop)->lock('own', permits: 3);
        $mine = $lock->acquire();
        $this->loop->run([function () use ($lock): void {
            $this->assertSame([false, false, 0], [$lock->isHeld(), $lock->isLost(), $lock->remainingMs()]);
            foreach ([$lock->release(...), $lock->token(...), $lock->slot(...), $lock->detach(...)] as $call) {
                $this->assertSame(NotHeldException::class, self::thrown($call));
            }
            $own = [$lock->acquire(), $lock->acquire()];
            $this->assertSame($own[1]->token(), $lock->token());
            $lock->release();
            $this->assertSame([true, false, $own[0]->token()], [$own[0]->isHeld(), $own[1]->isHeld(), $lock->token()]);
        }]);
        $this->assertSame([true, $mine->token()], [$mine->isHeld(), $lock->token()]);
    }

    public function testAHoldOfAFiberThatHasEndedIsTakenOver(): void
    {
        $lock = $this->client(loop: $this->loop)->lock('left');
        [$hold] = $this->loop->run([static fn (): Hold => $lock->acquire()]);
        $this->assertSame($hold->token(), $lock->token());
        $lock->release();
        $this->assertFalse($hold->isHeld());
        $this->assertNothingIsLeft();
    }

    public function testAHoldMayActInAnotherFiber(): void
    {
        $hold = $this->client(loop: $this->loop)->lock('handed')->acquire();
        $this->loop->run([static fn () => $hold->extend(), static fn () => $hold->isHeld()]);
        $this->loop->run([static fn () => $hold->release()]);
        $this->assertNothingIsLeft();
    }

    public function testOneObjectAdmitsAsManyAsItsKind(): void
    {
        foreach (['gpu' => ['permits' => 4], 'report' => ['shared' => true]] as $resource => $options) {
            $lock = $this->client(loop: $this->loop)->lock($resource, ...$options);
            $inside = $most = 0;
            $task = function () use ($lock, &$inside, &$most): void {
                $lock->run(function () use (&$inside, &$most): void {
                    $most = \max($most, ++$inside);
                    $this->delayUntil(static function () use (&$most): bool {
                        return $most === 4;
                    });
                    $inside--;
                });
            };
            $this->loop->run(\array_fill(0, 4, $task));
            $this->assertSame(4, $most);
        }
    }

    public function testAfterADowngradeTheNextRunWritesAlone(): void
    {
        $lock = $this->client()->lock('report');
        $reader = $this->client()->lock('report', shared: true);
        $both = static function (Hold $hold) use ($reader): array {
            $before = $reader->tryAcquire();
            $hold->downgrade();
            return [$before, $reader->tryAcquire() !== false];
        };
        for ($i = 0; $i < 2; $i++) {
            $this->assertSame([false, true], $lock->run($both));
            $reader->release();
        }
        $hold = $lock->with(maxExtensions: 0)->acquire();
        $this->assertNotNull(self::thrown($hold->downgrade(...)));
        $this->assertFalse($hold->isShared());
    }

    /** @dataProvider clients */
    public function testATermThatIsOverStaysOver(\Closure $make): void
    {
        $client = $make($this);
        $terms = [];
        $election = $client->election('scheduler');
        for ($i = 0; $i < 2; $i++) {
            $election->run(static function (Term $term) use (&$terms): void {
                $terms[] = [$term, $term->fence()];
            });
        }
        $election->run(function (Term $term) use ($terms): void {
            foreach ($terms as [$over, $fence]) {
                $this->assertSame([false, $fence, NotHeldException::class],
                    [$over->isHeld(), $over->fence(), self::thrown($over->check(...))]);
                $this->assertGreaterThan($fence, $term->fence());
            }
            $this->assertInstanceOf(Hold::class, $term);
            $term->check();
        });
    }

    public function testTwoFibersOnOneElectionAreTwoCandidates(): void
    {
        $election = $this->client(loop: $this->loop)->election('scheduler');
        $seen = new \stdClass();
        $seen->leading = $seen->most = 0;
        $lead = fn () => $election->run(function () use ($seen): void {
            $seen->most = \max($seen->most, ++$seen->leading);
            $this->loop->delay(20);
            $seen->leading--;
        });
        $this->loop->run([$lead, $lead, $lead]);
        $this->assertSame([1, 0], [$seen->most, $seen->leading]);
        $leader = $this->client()->lock('scheduler')->acquire();
        $waiting = fn () => $election->run(static fn () => throw new \LogicException('it leads'));
        $this->assertSame([null, null, null], $this->loop->run([$waiting, $waiting, function () use ($election): void {
            $this->loop->delay(20);
            $election->stop();
        }]));
        $leader->release();
    }

    public function testCancelEndsAllWaitsOfTheObjectAndNoHold(): void
    {
        $client = $this->client(loop: $this->loop);
        $lock = $client->lock('cancelled', permits: 2);
        $others = [$lock->acquire(), $client->lock('cancelled', permits: 2)->acquire()];
        $wait = static fn (): ?string => self::thrown(static fn () => $lock->acquire(-1));
        $told = $this->loop->run([$wait, $wait, function () use ($client, $lock): void {
            $this->delayUntil(static fn (): bool => $client->describe()['waiting'] === 2);
            $lock->cancel();
        }]);
        $this->assertSame([CancelledException::class, CancelledException::class, null], $told);
        $this->assertTrue($others[0]->isHeld() && $others[1]->isHeld());
    }

    public function testACancelBeforeAWaitLeavesItAsItIs(): void
    {
        $client = $this->client(loop: $this->loop);
        $lock = $client->lock('later', waitMs: 20_000);
        for ($i = 0; $i < 3; $i++) { /* the first hold's handle, and what the others' are copies of */
            $lock->cancel();
            $lock->acquire()->release();
        }
        $lock->cancel();
        $holder = $client->lock('later')->acquire();
        [$hold] = $this->loop->run([static fn () => $lock->acquire(), function () use ($client, $holder): void {
            $this->delayUntil(static fn (): bool => $client->describe()['waiting'] === 1);
            $holder->release();
        }]);
        $this->assertTrue($hold->isHeld());
    }

    /** @dataProvider clients */
    public function testTheHoldsOfALockBeginAlike(\Closure $make): void
    {
        $client = $make($this);
        $lock = $client->lock(['a', 'b'], ttlMs: 20000);
        for ($i = 0; $i < 3; $i++) {
            $this->assertTrue($lock->run(static fn (Hold $hold): bool => $hold->isRenewed()));
            $hold = $lock->acquire();
            $this->assertFalse($hold->isRenewed());
            $this->assertGreaterThan(15000, $hold->remainingMs());
            $this->assertFalse($client->lock('b')->tryAcquire());
            $hold->release();
        }
    }

    /** @dataProvider clients */
    public function testWithMakesAnotherLock(\Closure $make): void
    {
        $lock = $make($this)->lock(['a', 'b'], ttlMs: 20000, renew: true);
        $other = $lock->with(ttlMs: 9000);
        $this->assertNotSame($lock, $other);
        $hold = $other->acquire();
        $this->assertLessThanOrEqual(9000, $hold->remainingMs());
        $this->assertTrue($hold->isRenewed());
        $this->assertFalse($lock->with()->tryAcquire(), 'on the same resources');
        $hold->release();
        $this->assertGreaterThan(9000, $lock->acquire()->remainingMs());
    }

    public function testARefusalIsKept(): void
    {
        $client = $this->client();
        $lock = $client->lock('refused');
        $this->assertNull($lock->refused());
        $hold = $this->client(clientName: 'holder')->lock('refused')->acquire();
        $this->assertFalse($lock->tryAcquire());
        $this->assertSame(['refused', 'holder', 5],
            [$lock->refused()->resource, $lock->refused()->heldBy['client_name'], \count($lock->refused()->votes)]);
        $hold->release();
    }

    public function testAChildLeavesTheHoldsOfItsParentAlone(): void
    {
        $lock = $this->client()->lock('forked', renew: false);
        $hold = $lock->acquire();
        $told = $this->inChild(static function () use ($lock, $hold): string {
            $acts = [$hold->release(...), $hold->extend(...), $lock->release(...), $hold->check(...)];
            $told = [...\array_map(self::thrown(...), $acts), $hold->isHeld(), $hold->isLost(), $lock->tryAcquire()];
            try {
                $hold->detach();
            } catch (ForkedException $forked) {
                $told[] = $forked->getMessage();
            }
            unset($hold, $lock);
            return \json_encode($told);
        });
        $forked = ForkedException::class;
        $this->assertSame([$forked, $forked, $forked, $forked, false, true, false, '"forked" is held by the parent '
            . 'process'], \json_decode($told, true));
        $this->assertSame($hold->token(), $this->client()->status('forked')->token);
        $hold->check();
        $hold->release();
        $this->assertNothingIsLeft();
    }

    public function testHoldsAndLocksAreNeitherClonedNorSerialised(): void
    {
        $client = $this->client();
        $hold = $client->lock('once')->acquire();
        foreach ([$client->lock('free'), $hold] as $object) {
            $this->assertSame(\Error::class, self::thrown(static fn () => clone $object));
            $this->assertSame(\LogicException::class, self::thrown(static fn () => \serialize($object)));
        }
    }

    public function testOthersSeeAndSetNoInternals(): void
    {
        $lock = (new MemoryClient())->lock('orders:42');
        foreach ([$lock, $lock->acquire()] as $object) {
            $this->assertSame('{"resource":"orders:42"}', \json_encode($object));
            foreach ((new \ReflectionClass($object))->getProperties() as $property) {
                $set = static fn () => $object->{$property->getName()} = null;
                $this->assertSame(\Error::class, self::thrown($set), "$property");
            }
        }
    }

    public function testLostHoldsDoNotPileUp(): void
    {
        $lock = (new MemoryClient(['ttl_ms' => 1000]))->lock('piled', permits: 256);
        $client = new MemoryClient(['ttl_ms' => 1000]);
        $lock = $client->lock('piled');
        for ($i = 0; $i < 3000; $i++) {
            $lock->acquire();
            $client->pass(1000);
        }
        \preg_match_all('/lost/', \print_r($lock, true), $lost);
        $this->assertLessThanOrEqual(1, \count($lost[0]));
        $readers = $client->lock('piled', shared: true);
        for ($i = 0; $i < 3000; $i++) {
            $readers->acquire();
            $client->pass(1000);
        }
        \preg_match_all('/lost/', \print_r($readers, true), $lost);
        $this->assertLessThanOrEqual(1001, \count($lost[0]));
    }

    public function testALostLockIsAcquiredAgainAtOnce(): void
    {
        $lock = $this->client()->lock('again', ttlMs: 8000, nodeTimeoutMs: 2000, driftFactor: 0.1, renew: false);
        $lost = $lock->acquire();
        Wait::until($lost->isLost(...), 'the end of the lease, before that of the keys');
        $this->assertNotFalse($lock->tryAcquire());
        $this->assertSame(LostException::class, self::thrown($lost->release(...)));
        $this->assertTrue($lock->isHeld());
    }
}
