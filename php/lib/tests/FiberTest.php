<?php

declare(strict_types=1);

namespace Redlock\Tests;

use Redlock\Client;
use Redlock\Exception\BusyException;
use Redlock\Exception\CancelledException;
use Redlock\Exception\InFlightException;
use Redlock\Exception\LostException;
use Redlock\Exception\NoQuorumException;
use Redlock\Hold;

final class FiberTest extends NodesTestCase
{
    private StreamSelectLoop $loop;

    protected function setUp(): void
    {
        parent::setUp();
        $this->loop = new StreamSelectLoop();
    }

    private function fiberClient(mixed ...$options): Client
    {
        return $this->client(...$options, loop: $this->loop);
    }

    public function testManyFibersShareOneConnectionPerNode(): void
    {
        $client = $this->fiberClient();
        $tasks = [];
        for ($i = 0; $i < 64; $i++) {
            $tasks[] = static fn () => $client->lock("resource:$i")->run(
                static fn (Hold $lock): bool => $lock->isHeld());
        }
        $this->assertSame(\array_fill(0, 64, true), $this->loop->run($tasks));
        $client->status('resource:0'); /* the locks waited for a majority only, this is for all */
        $this->assertConnections(5);
        $this->assertNothingIsLeft();
    }

    public function testBusyNamesTheHolder(): void
    {
        $held = $this->client(clientName: 'worker-5')->lock('known')->acquire();
        $client = $this->fiberClient();
        $said = '';
        Wait::until(function () use ($client, &$said): bool { /* an answer is waited for for 250 ms only */
            [$said] = $this->loop->run([static function () use ($client): string {
                try {
                    $client->lock('known')->acquire(0);
                } catch (BusyException $busy) {
                    return "{$busy->heldBy['client_name']} {$busy->getMessage()}";
                }
            }]);
            return !\str_contains($said, 'held by others');
        }, 'the name of the holder', 20.0); /* the lease lasts longer */
        $this->assertStringStartsWith('worker-5 held by worker-5 (pid ' . \getmypid() . ' on ', $said);
        $held->release();
    }

    /** As Wait::until, but other Fibers go on. */
    private function delayUntil(\Closure $condition): void
    {
        for ($end = \microtime(true) + 30; !$condition(); $this->loop->delay(1)) {
            \microtime(true) < $end || throw new \RuntimeException('waited 30 s in vain');
        }
    }

    public function testFibersHoldALockOneAtATime(): void
    {
        $client = $this->fiberClient(retryDelayMs: 5);
        $inside = $most = 0;
        $task = function () use ($client, &$inside, &$most): void {
            $client->lock('one')->run(function () use (&$inside, &$most): void {
                $most = \max($most, ++$inside);
                $this->loop->delay(1);
                $inside--;
            });
        };
        $this->loop->run(\array_fill(0, 10, $task));
        $this->assertSame(1, $most);
    }

    public function testADestroyedFiberLeavesNoKey(): void
    {
        $client = $this->fiberClient();
        $holder = $client->lock('destroyed');
        $holder->acquire();
        $fiber = new \Fiber(static fn () => $client->lock('destroyed')->run(static fn () => null, -1));
        $fiber->start();
        $this->assertTrue($fiber->isSuspended());
        unset($fiber);
        \gc_collect_cycles();
        $holder->release();
        $this->assertNothingIsLeft();
        $this->assertNotFalse($client->lock('destroyed')->tryAcquire());
    }

    public function testAnotherFiberEndsAWait(): void
    {
        $client = $this->fiberClient();
        $holder = $client->lock('scheduler');
        $holder->acquire();
        $election = $client->election('scheduler');
        $waiting = $client->lock('scheduler');
        [$leads, $told] = $this->loop->run([
            static fn () => $election->run(static fn (): string => 'it leads'),
            static function () use ($waiting): string {
                try {
                    $waiting->acquire(-1);
                } catch (CancelledException) {
                    return 'cancelled';
                }
            },
            function () use ($client, $election, $waiting): void {
                $this->delayUntil(static fn (): bool => $client->describe()['waiting'] === 2);
                $election->stop();
                $waiting->cancel();
            },
        ]);
        $this->assertSame([null, 'cancelled'], [$leads, $told]);
        $holder->release();
        $this->assertNothingIsLeft();
    }

    public function testAFiberDestroyedInItsBodyReleases(): void
    {
        $client = $this->fiberClient();
        $inside = false;
        $body = static function () use (&$inside): void {
            $inside = true;
            \Fiber::suspend();
        };
        $fiber = new \Fiber(static fn () => $client->lock('body')->run($body));
        $this->loop->run([function () use ($fiber, &$inside): void {
            $fiber->start();
            $this->delayUntil(static function () use (&$inside): bool {
                return $inside;
            });
        }]);
        $this->assertGreaterThanOrEqual(3, self::cluster()->keys()['body'] ?? 0);
        unset($fiber);
        \gc_collect_cycles();
        $this->assertNothingIsLeft();
    }

    public function testAReleaseComesAfterWhatIsInFlight(): void
    {
        $client = $this->fiberClient();
        $hold = $client->lock('shared object')->acquire();
        $told = [];
        $this->loop->run([
            static function () use ($hold, &$told): void {
                $hold->extend();
                $told[] = 'extended';
            },
            static function () use ($hold, &$told): void {
                $hold->release();
                $told[] = 'released';
            },
        ]);
        $this->assertSame(['extended', 'released'], $told);
        $this->assertNothingIsLeft();
    }

    public function testAFiberDestroyedInItsReleaseReleases(): void
    {
        $hold = $this->fiberClient()->lock('released')->acquire();
        \array_map(static fn (Node $node) => $node->stop(), self::cluster()->nodes);
        $extending = new \Fiber($hold->extend(...));
        $extending->start();
        $releasing = new \Fiber($hold->release(...));
        $releasing->start();
        $this->assertTrue($releasing->isSuspended());
        unset($releasing);
        \gc_collect_cycles();
        $this->assertFalse($hold->isHeld());
        \array_map(static fn (Node $node) => $node->cont(), self::cluster()->nodes);
        $this->assertNothingIsLeft();
    }

    public function testAReleaseWaitsForWhoHasNotHeardOfAnEndYet(): void
    {
        $client = $this->fiberClient();
        $hold = $client->lock('shared object')->acquire();
        $told = [];
        $this->loop->run([
            static function () use ($hold, &$told): void {
                $hold->extend();
                $told[] = 'extended';
            },
            function () use ($hold, &$told): void {
                /* blocks without the loop, on the same connections, until each node has answered both */
                $this->client()->status('shared object');
                $hold->release();
                $this->assertSame(['extended'], $told);
            },
        ]);
        $this->assertNothingIsLeft();
    }

    public function testAnExtensionEndsWhenItsLostHoldIsGivenUp(): void
    {
        $lock = $this->fiberClient(ttlMs: 1000, nodeTimeoutMs: 250)->lock('given up');
        $hold = $lock->acquire();
        \array_map(static fn (Node $node) => $node->stop(), self::cluster()->nodes);
        $extending = new \Fiber(static function () use ($hold): string {
            try {
                $hold->extend();
            } catch (CancelledException | LostException | NoQuorumException) { /* what it comes to first */
                return 'ended';
            }
        });
        $extending->start();
        Wait::until($hold->isLost(...), 'the end of the lease');
        \array_map(static fn (Node $node) => $node->cont(), self::cluster()->nodes);
        $lock->acquire();
        $this->loop->run([fn () => $this->delayUntil($extending->isTerminated(...))]);
        $this->assertSame('ended', $extending->getReturn());
    }

    /** @dataProvider secondActs */
    public function testTwoFibersInOneHoldAreRefused(string $second): void
    {
        $hold = $this->fiberClient()->lock('shared object')->acquire();
        $this->expectException(InFlightException::class);
        $this->expectExceptionMessage('"shared object": another Fiber, coroutine or signal handler is using this hold');
        $this->loop->run([static fn () => $hold->extend(), static fn () => $hold->$second()]);
    }

    public static function secondActs(): array
    {
        return ['extend' => ['extend'], 'downgrade' => ['downgrade']];
    }

    public function testADrainWhileALockIsReleasedIsNoFailure(): void
    {
        $client = $this->fiberClient();
        $nodes = self::cluster()->nodes;
        $paid = false;
        $results = $this->loop->run([
            static function () use ($client, $nodes, &$paid): string {
                return $client->lock('paid')->run(static function () use ($nodes, &$paid): string {
                    \array_map(static fn (Node $node) => $node->stop(), $nodes);
                    $paid = true;
                    return 'receipt';
                });
            },
            function () use ($client, $nodes, &$paid): void {
                $this->delayUntil(static function () use (&$paid): bool {
                    return $paid;
                });
                $this->assertGreaterThan(0, $client->inFlight());
                $client->drain(0);
                \array_map(static fn (Node $node) => $node->cont(), $nodes);
            },
        ]);
        $this->assertSame('receipt', $results[0]);
        $this->assertSame(0, $client->inFlight());
        $this->assertNothingIsLeft();
    }

    public function testWhatIsInFlightIsCounted(): void
    {
        $client = $this->fiberClient();
        $hold = $client->lock('counted')->acquire();
        $this->assertSame(0, $client->inFlight());
        $this->loop->run([
            static fn () => $client->lock('counted')->acquire(),
            function () use ($client, $hold): void {
                $this->assertSame(1, $client->inFlight());
                $hold->release();
            },
        ]);
        $this->assertSame(0, $client->inFlight());
        $client->lock('counted:body')->run(function () use ($client): void {
            $this->assertSame(1, $client->inFlight());
        });
        $this->assertSame(0, $client->inFlight());
    }

    public function testManyCyclesDoNotGrow(): void
    {
        $client = $this->fiberClient();
        $cycles = function (int $count) use ($client): void {
            $this->loop->run(
                \array_map(static fn (int $number): \Closure => static function () use ($client, $number,
                    $count): void {
                for ($i = 0; $i < $count; $i++) {
                    $client->lock("cycle:$number", ttlMs: 20000, outageWaitMs: 30000)->run(static fn () => null);
                }
                }, \range(1, 64)));
        };
        $cycles(50);
        $before = \memory_get_usage();
        $cycles(300);
        /* what nodes that lag behind are owed takes room up to a mark; a leak goes on */
        for ($round = 0, $growthKb = \PHP_INT_MAX; $round < 8 && $growthKb > 128; $round++) {
            $beforeKb = self::residentKb();
            $cycles(400);
            $growthKb = self::residentKb() - $beforeKb;
        }
        $this->assertLessThan(5_000, \memory_get_usage() - $before);
        $this->assertLessThanOrEqual(128, $growthKb);
        $this->assertNothingIsLeft();
    }

    public function testAnErrorLeavesOtherSleepersInTheLoop(): void
    {
        $awake = false;
        $sleeper = new \Fiber(function () use (&$awake): void {
            $this->loop->delay(1);
            $awake = true;
        });
        try {
            $this->loop->run([
                function (): void {
                    $this->loop->delay(1);
                    throw new \DomainException('first');
                },
                static function () use ($sleeper): void {
                    $sleeper->start();
                    for ($end = \hrtime(true) + 5_000_000; \hrtime(true) < $end;) {
                        continue; /* until both are due in one turn */
                    }
                },
            ]);
            $this->fail('the error stays in the loop');
        } catch (\DomainException) {
            $this->assertFalse($awake);
        }
        $this->loop->run([fn () => $this->loop->delay(1)]);
        $this->assertTrue($awake);
    }

    public function testADeadlockOfFibersIsAnError(): void
    {
        $this->expectException(\LogicException::class);
        $this->loop->run([static fn () => \Fiber::suspend()]);
    }

    public function testADeadlockBesideAnIdleClientIsAnError(): void
    {
        $client = $this->fiberClient();
        $this->expectException(\LogicException::class);
        $this->loop->run([static function () use ($client): void {
            $client->lock('idle')->run(static fn () => null);
            \Fiber::suspend();
        }]);
    }

    public function testASignalHandlerRunsWhileFibersWait(): void
    {
        $client = $this->fiberClient();
        $holder = $client->lock('signal')->acquire();
        $child = \proc_open(['sh', '-c', 'read line; kill -USR1 $PPID'], [['pipe', 'r']], $pipes);
        $handled = 0;
        \pcntl_async_signals(true);
        \pcntl_signal(\SIGUSR1, static function () use (&$handled, $holder): void {
            $handled++;
            $holder->release();
        });
        $this->loop->run([
            static fn () => $client->lock('signal')->acquire(-1),
            static fn () => \fwrite($pipes[0], "\n"),
        ]);
        $this->assertSame(1, $handled);
        \fclose($pipes[0]);
        $this->assertSame(0, \proc_close($child));
    }

    public function testHighDescriptorsAreRefusedWithWords(): void
    {
        $this->assertGreaterThan(1100, \posix_getrlimit()["soft openfiles"]);
        $files = [];
        for ($i = 0; $i < 1030; $i++) {
            $files[] = \fopen('/dev/null', 'r');
        }
        $client = $this->fiberClient();
        $this->expectException(\RuntimeException::class);
        $this->expectExceptionMessage('1024');
        $this->loop->run([static fn () => $client->lock('high')->acquire(0)]);
    }
}
