<?php

declare(strict_types=1);

namespace Redlock\Tests;

use Redlock\Client;
use Redlock\Exception\BusyException;
use Redlock\Exception\CancelledException;
use Redlock\Exception\LostException;
use Redlock\Hold;
use Redlock\Native;
use Redlock\Testing\MemoryClient;
use Swoole\Coroutine;
use Swoole\Event;

final class SwooleTest extends NodesTestCase
{
    private const HOOKS = 0x7fffffff; /* SWOOLE_HOOK_ALL without curl */

    protected function setUp(): void
    {
        if (!\extension_loaded('swoole')) {
            $this->markTestSkipped('the extension swoole is not installed');
        }
        parent::setUp();
    }

    private function inCoroutine(\Closure $body): void
    {
        $failure = null;
        Coroutine\run(static function () use ($body, &$failure): void {
            try {
                $body();
            } catch (\Throwable $failure) {
            }
        });
        $failure === null || throw $failure;
    }

    /** As Wait::until, but other coroutines go on. */
    private static function waitUntil(\Closure $condition, string $what): void
    {
        for ($end = \microtime(true) + 30; !$condition(); Coroutine::sleep(0.001)) {
            \microtime(true) < $end || throw new Late("waited 30 s in vain for $what");
        }
    }

    public function testManyCoroutinesShareOneConnectionPerNode(): void
    {
        $client = $this->client();
        $held = 0;
        $this->inCoroutine(static function () use ($client, &$held): void {
            for ($i = 0; $i < 200; $i++) {
                Coroutine::create(static function () use ($client, $i, &$held): void {
                    $held += $client->lock("resource:$i")->run(static fn (Hold $lock): int => (int) $lock->isHeld());
                });
            }
        });
        $this->assertSame(200, $held);
        $client->status('resource:0'); /* the locks waited for a majority only, this is for all */
        $this->assertConnections(5);
        $this->assertNothingIsLeft();
    }

    /** As Hyperf's processes do at their end. */
    public function testTimersMayBeCleared(): void
    {
        $client = $this->client();
        $this->inCoroutine(static function () use ($client): void {
            $client->lock('timers')->run(static fn () => null);
            \Swoole\Timer::clearAll();
        });
        $this->assertNothingIsLeft();
    }

    public function testCoroutinesHoldOneAtATimeAndTheWorkerGoesOn(): void
    {
        $client = $this->client(retryDelayMs: 5);
        $inside = $most = $ticks = $done = 0;
        $this->inCoroutine(static function () use ($client, &$inside, &$most, &$ticks, &$done): void {
            for ($i = 0; $i < 20; $i++) {
                Coroutine::create(static function () use ($client, &$inside, &$most, &$done): void {
                    $client->lock('one')->run(static function () use (&$inside, &$most): void {
                        $most = \max($most, ++$inside);
                        Coroutine::sleep(0.002);
                        $inside--;
                    });
                    $done++;
                });
            }
            while ($done < 20) {
                Coroutine::sleep(0.001);
                $ticks++;
            }
        });
        $this->assertSame(1, $most);
        $this->assertGreaterThan(10, $ticks);
    }

    /** @dataProvider kinds */
    public function testAServiceThatTwoCoroutinesCallExcludesThem(bool $isReentrant, int $hooks): void
    {
        $lock = $this->client()->lock('stock', reentrant: $isReentrant);
        $inside = $most = $calls = 0;
        $before = Coroutine::getOptions()['hook_flags'] ?? 0;
        Coroutine::set(['hook_flags' => $hooks]);
        $this->inCoroutine(static function () use ($lock, $isReentrant, &$inside, &$most, &$calls): void {
            $body = static function () use (&$inside, &$most, &$calls): void {
                $most = \max($most, ++$inside);
                Coroutine::sleep(0.002);
                $inside--;
                $calls++;
            };
            for ($i = 0; $i < 8; $i++) {
                Coroutine::create(static fn (): mixed => $lock->run(
                    static fn (): mixed => $isReentrant ? $lock->run($body) : $body()));
            }
        });
        Coroutine::set(['hook_flags' => $before]);
        $this->assertSame([1, 8], [$most, $calls]);
        $this->assertNothingIsLeft();
    }

    public static function kinds(): array
    {
        return ['plain' => [false, 0], 'reentrant' => [true, 0], 'plain, hooks' => [false, self::HOOKS],
            'reentrant, hooks' => [true, self::HOOKS]];
    }

    public function testALockInMemoryBelongsToItsCoroutine(): void
    {
        $lock = (new MemoryClient())->lock('tree', reentrant: true);
        $this->inCoroutine(function () use ($lock): void {
            $hold = $lock->acquire();
            Coroutine::create(fn () => $this->assertFalse($lock->tryAcquire()));
            $this->assertSame($hold, $lock->tryAcquire());
        });
    }

    public function testALateCoroutineIsNotItsSuccessor(): void
    {
        $lock = $this->client()->lock('account', ttlMs: 1000, nodeTimeoutMs: 200, renew: false, fence: true);
        $seen = new \stdClass();
        $seen->next = $seen->late = null;
        $this->inCoroutine(static function () use ($lock, $seen): void {
            Coroutine::create(static function () use ($lock, $seen): void {
                try {
                    $lock->run(static function (Hold $hold) use ($seen): void {
                        $fence = $hold->fence();
                        self::waitUntil(static fn (): bool => $seen->next !== null, 'the successor');
                        $seen->told = [$hold->isLost(), $hold->fence() === $fence];
                    });
                } catch (LostException $lost) {
                    $seen->late = $lost;
                }
            });
            $seen->next = $lock->acquire();
            $seen->next->extend(20000);
            self::waitUntil(static fn (): bool => $seen->late !== null, 'the late one');
        });
        $this->assertSame([true, true], $seen->told);
        $this->assertTrue($seen->next->isHeld());
        $this->assertSame($seen->next->token(), $this->client()->status('account')->token);
    }

    public function testAReleaseComesAfterWhatIsInFlight(): void
    {
        $client = $this->client();
        $told = [];
        $this->inCoroutine(static function () use ($client, &$told): void {
            $hold = $client->lock('acted on')->acquire();
            Coroutine::create(static function () use ($hold, &$told): void {
                $hold->extend();
                $told[] = 'extended';
            });
            $hold->release();
            $told[] = 'released';
        });
        $this->assertEqualsCanonicalizing(['extended', 'released'], $told);
        $this->assertNothingIsLeft();
    }

    /** The numbers of coroutines come again. */
    public function testACoroutineOwnsNothingOfOneThatHasEnded(): void
    {
        $lock = $this->client()->lock('number', permits: 3);
        $holds = [$lock->acquire()];
        $this->inCoroutine(function () use ($lock, &$holds): void {
            Coroutine::create(static function () use ($lock, &$holds): void {
                $holds[] = $lock->acquire();
            });
            self::waitUntil(static function () use (&$holds): bool {
                return isset($holds[1]);
            }, 'the first');
            Coroutine::create(fn () => $this->assertFalse($lock->isHeld()));
        });
        $this->assertTrue($holds[0]->isHeld() && $holds[1]->isHeld());
    }

    /** Nobody would wake a coroutine that waits for it. */
    public function testADescriptorThatCanNotBeWatchedIsAnError(): void
    {
        $client = $this->client();
        $lock = $client->lock('unwatched');
        $fd = (static fn (Client $client): int => $client->native->fd())->bindTo(null, Client::class)($client);
        $seen = null;
        $this->inCoroutine(static function () use ($lock, $fd, &$seen): void {
            Event::add($fd, static fn () => null, null, \SWOOLE_EVENT_READ);
            try {
                @$lock->acquire();
            } catch (\RuntimeException $seen) {
            } finally {
                Event::del($fd);
            }
        });
        $this->assertStringContainsString("can not watch the client's descriptor $fd", $seen?->getMessage() ?? 'held');
        $this->inCoroutine(static fn () => $lock->run(static fn () => null));
        $this->assertNothingIsLeft();
    }

    public function testBusyIsNotCancelled(): void
    {
        $client = $this->client();
        $holder = $client->lock('busy');
        $holder->acquire();
        $this->expectException(BusyException::class);
        $this->inCoroutine(static fn () => $client->lock('busy')->acquire(500));
    }

    /** @dataProvider cancels */
    public function testCancelAtAcquireLeavesNoKey(bool $throw): void
    {
        $client = $this->client(retryDelayMs: 5);
        $holder = $client->lock('cancelled');
        $holder->acquire();
        $seen = null;
        $this->inCoroutine(static function () use ($client, &$seen, $throw): void {
            $cid = Coroutine::create(static function () use ($client, &$seen): void {
                try {
                    $client->lock('cancelled')->acquire(-1);
                } catch (\Throwable $seen) {
                }
            });
            try {
                self::waitUntil(static fn (): bool => $client->describe()['attempts'] >= 3, 'the waiter to try again');
            } finally {
                Coroutine::cancel($cid, $throw);
            }
        });
        $throw ? $this->assertInstanceOf(Coroutine\CanceledException::class,
            $seen) : $this->assertInstanceOf(CancelledException::class, $seen);
        $throw || $this->assertMatchesRegularExpression(
            '/^cancelled on request: \d of 5 nodes granted "cancelled", 3 needed: /', $seen->getMessage());
        $holder->release();
        $this->assertNothingIsLeft();
    }

    public function testAnotherCoroutineStopsAnElection(): void
    {
        $client = $this->client();
        $holder = $client->lock('scheduler');
        $holder->acquire();
        $result = 'it waits';
        $this->inCoroutine(static function () use ($client, &$result): void {
            $election = $client->election('scheduler');
            Coroutine::create(static function () use ($election, &$result): void {
                $result = $election->run(static fn (): string => 'it leads');
            });
            self::waitUntil(static fn (): bool => $client->describe()['waiting'] === 1, 'the candidate to wait');
            $election->stop();
        });
        $this->assertNull($result);
        $holder->release();
        $this->assertNothingIsLeft();
    }

    /** @dataProvider cancels */
    public function testCancelInTheBodyReleases(bool $throw): void
    {
        $client = $this->client();
        $this->inCoroutine(static function () use ($client, $throw): void {
            $inside = false;
            $cid = Coroutine::create(static function () use ($client, &$inside): void {
                try {
                    $client->lock('body')->run(static function () use (&$inside): void {
                        $inside = true;
                        Coroutine::sleep(30);
                    });
                } catch (Coroutine\CanceledException) {
                }
            });
            self::waitUntil(static function () use (&$inside): bool {
                return $inside;
            }, 'the body to begin');
            Coroutine::cancel($cid, $throw);
        });
        $this->assertNothingIsLeft();
    }

    /** @dataProvider cancels */
    public function testCancelAtReleaseStillReleases(bool $throw): void
    {
        $client = $this->client(nodeTimeoutMs: 2000);
        $nodes = self::cluster()->nodes;
        $this->inCoroutine(static function () use ($client, $nodes, $throw): void {
            $lock = $client->lock('release')->acquire();
            \array_map(static fn (Node $node) => $node->stop(), \array_slice($nodes, 0, 3));
            $cid = Coroutine::create(static function () use ($lock): void {
                try {
                    $lock->release();
                } catch (Coroutine\CanceledException) {
                }
            });
            Coroutine::cancel($cid, $throw);
            \array_map(static fn (Node $node) => $node->cont(), $nodes);
        });
        $this->assertNothingIsLeft();
    }

    public static function cancels(): array
    {
        return ['plain' => [false], 'with an exception' => [true]];
    }

    public function testExitInABodyReleases(): void
    {
        $client = $this->client();
        $this->inCoroutine(static function () use ($client): void {
            Coroutine::create(static function () use ($client): void {
                try {
                    $client->lock('exit')->run(static fn () => throw new \Swoole\ExitException('exit'));
                } catch (\Swoole\ExitException) {
                }
            });
        });
        $this->assertNothingIsLeft();
    }

    public function testADeadlockedCoroutineThatIsDestroyedReleases(): void
    {
        $client = $this->client();
        $this->inCoroutine(static function () use ($client): void {
            $lock = $client->lock('forgotten');
            $lock->acquire();
            unset($lock); /* the destructor never suspends */
        });
        $this->assertNothingIsLeft();
    }

    public function testBlockingAndCoroutineCallsShareAClient(): void
    {
        $client = $this->client();
        $client->lock('a')->run(static fn () => null);
        $this->inCoroutine(static fn () => $client->lock('a')->run(static fn () => null));
        $client->lock('a')->run(static fn () => null);
        $this->inCoroutine(static fn () => $client->lock('a')->run(static fn () => null));
        $this->assertNothingIsLeft();
    }

    /** The reply comes while the worker computes, and with it whatever timer has run out meanwhile. */
    public function testAWorkerThatComputesGoesOn(): void
    {
        $client = $this->client();
        $this->assertSame('alive', $this->inChild(static function () use ($client): string {
            Coroutine\run(static function () use ($client): void {
                $done = 0;
                for ($i = 0; $i < 4; $i++) {
                    Coroutine::create(static function () use ($client, $i, &$done): void {
                        $client->lock("computes:$i")->run(static fn () => null);
                        $done++;
                    });
                    self::compute(150);
                    self::waitUntil(static function () use ($i, &$done): bool {
                        return $done > $i;
                    }, 'the lock to be released');
                }
            });
            return 'alive';
        }));
        $this->assertNothingIsLeft();
    }

    private static function compute(int $ms): void
    {
        for ($end = \hrtime(true) + $ms * 1_000_000; \hrtime(true) < $end;) {
            \sha1('work');
        }
    }

    public function testCoroutinesHoldLocksWhereCallbacksRunInNone(): void
    {
        $client = $this->client(retryDelayMs: 5);
        $this->assertSame('3', $this->inChild(static function () use ($client): string {
            \swoole_async_set(['enable_coroutine' => false]);
            $held = 0;
            Coroutine\run(static function () use ($client, &$held): void {
                for ($i = 0; $i < 3; $i++) {
                    Coroutine::create(static function () use ($client, &$held): void {
                        $held += $client->lock('none')->run(static fn (Hold $lock): int => (int) $lock->isHeld());
                    });
                }
            });
            return (string) $held;
        }));
        $this->assertNothingIsLeft();
    }

    /** @dataProvider cancels */
    public function testAGrantThatItsWaiterNeverTookIsGivenBack(bool $throw): void
    {
        $client = $this->client();
        $lock = $client->lock('granted');
        $seen = null;
        $this->inCoroutine(static function () use ($client, $lock, &$seen, $throw): void {
            $cid = Coroutine::create(static function () use ($lock, &$seen): void {
                try {
                    $lock->acquire(-1);
                } catch (\Throwable $seen) {
                }
            });
            self::grantBeforeAnybodyIsWoken($client);
            Coroutine::cancel($cid, $throw);
        });
        $this->assertInstanceOf($throw ? Coroutine\CanceledException::class : CancelledException::class, $seen);
        $this->assertFalse($lock->isHeld());
        $this->assertNothingIsLeft();
    }

    /** No coroutine runs meanwhile: Swoole's loop does not turn. */
    private static function grantBeforeAnybodyIsWoken(Client $client): void
    {
        $native = (static fn (Client $client): Native\Client => $client->native)->bindTo(null, Client::class)($client);
        for ($end = \microtime(true) + 30; $client->describe()['held'] === 0;) {
            $native->process();
            \microtime(true) < $end || throw new \RuntimeException('the nodes did not grant');
        }
    }

    /** @dataProvider cancels */
    public function testTheBodyOfACancelledWaiterIsNotEntered(bool $throw): void
    {
        $client = $this->client();
        $holder = $client->lock('body');
        $holder->acquire();
        $entered = false;
        $seen = null;
        $this->inCoroutine(static function () use ($client, &$entered, &$seen, $throw): void {
            $cid = Coroutine::create(static function () use ($client, &$entered, &$seen): void {
                try {
                    $client->lock('body')->run(static function () use (&$entered): void {
                        $entered = true;
                    }, -1);
                } catch (\Throwable $seen) {
                }
            });
            Coroutine::cancel($cid, $throw);
        });
        $this->assertInstanceOf($throw ? Coroutine\CanceledException::class : CancelledException::class, $seen);
        $this->assertFalse($entered);
        $this->assertTrue($holder->isHeld());
    }

    /** @dataProvider cancels */
    public function testAReleaseInACancelledCoroutineDoesNotSuspend(bool $throw): void
    {
        $client = $this->client();
        $ended = null;
        $this->inCoroutine(static function () use ($client, &$ended, $throw): void {
            $lock = $client->lock('finally');
            $isIn = false;
            $cid = Coroutine::create(static function () use ($lock, &$isIn): void {
                try {
                    $lock->run(static function () use (&$isIn): void {
                        $isIn = true;
                        Coroutine::sleep(30);
                    });
                } catch (Coroutine\CanceledException) {
                }
            });
            self::waitUntil(static function () use (&$isIn): bool {
                return $isIn;
            }, 'the lock to be held');
            Coroutine::cancel($cid, $throw);
            $ended = !Coroutine::exists($cid);
        });
        $this->assertTrue($ended, 'cancel() runs the coroutine up to its next suspension: there is none');
        $this->assertNothingIsLeft();
    }

    /** @dataProvider cancels */
    public function testACancelledReleaseEndsTheExtensionThatItWaitedFor(bool $throw): void
    {
        $hold = $this->client()->lock('extended')->acquire();
        $nodes = self::cluster()->nodes;
        $ended = $woken = null;
        $this->inCoroutine(static function () use ($hold, $nodes, $throw, &$ended, &$woken): void {
            \array_map(static fn (Node $node) => $node->stop(), $nodes);
            Coroutine::create(static function () use ($hold, &$ended): void {
                try {
                    $hold->extend();
                } catch (CancelledException $ended) {
                }
            });
            $cid = Coroutine::create(static function () use ($hold, &$woken): void {
                try {
                    $hold->release();
                } catch (Coroutine\CanceledException) {
                }
                $woken = false;
                Coroutine::suspend(); /* it waits for something else */
                $woken = true;
            });
            Coroutine::cancel($cid, $throw);
            \array_map(static fn (Node $node) => $node->cont(), $nodes);
            self::waitUntil(static function () use (&$ended): bool {
                return $ended !== null;
            }, 'the extension to end');
            $wokenTooEarly = $woken;
            Coroutine::resume($cid);
            $woken = [$wokenTooEarly, $woken];
        });
        $this->assertSame([false, true], $woken);
        $this->assertNothingIsLeft();
    }

    /** @dataProvider cancels */
    public function testCancelAtReleaseSaysWhatIsKnownHere(bool $throw): void
    {
        [$lock, $seen] = $this->cancelledAt(static fn (Hold $lock) => $lock->release(), $throw);
        $throw ? $this->assertInstanceOf(Coroutine\CanceledException::class, $seen) : $this->assertNull($seen);
        $this->assertFalse($lock->isHeld());
        $this->assertNothingIsLeft();
    }

    /** @dataProvider cancels */
    public function testCancelAtExtendLeavesTheLockHeld(bool $throw): void
    {
        [$lock, $seen] = $this->cancelledAt(static fn (Hold $lock) => $lock->extend(), $throw);
        $this->assertInstanceOf($throw ? Coroutine\CanceledException::class : CancelledException::class, $seen);
        $this->assertTrue($lock->isHeld());
        $lock->release();
        $this->assertNothingIsLeft();
    }

    /** @return array{Hold, ?\Throwable} a hold, and what its operation threw when it was cancelled in mid-flight */
    private function cancelledAt(\Closure $operation, bool $throw): array
    {
        $lock = $this->client()->lock('cancelled')->acquire();
        $nodes = self::cluster()->nodes;
        $seen = null;
        $this->inCoroutine(static function () use ($lock, $nodes, $operation, &$seen, $throw): void {
            \array_map(static fn (Node $node) => $node->stop(), $nodes);
            $cid = Coroutine::create(static function () use ($lock, $operation, &$seen): void {
                try {
                    $operation($lock);
                } catch (\Throwable $seen) {
                }
            });
            Coroutine::cancel($cid, $throw);
            \array_map(static fn (Node $node) => $node->cont(), $nodes);
        });
        return [$lock, $seen];
    }
}
