<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests;

use Hyperf\Framework\Event\OnWorkerExit;
use Hyperf\Framework\Event\OnWorkerStop;
use Redlock\Exception\BusyException;
use Redlock\Exception\InvalidOptionException;
use Redlock\Exception\LostException;
use Redlock\Exception\NoQuorumException;
use Redlock\Exception\RedlockThrowable;
use Redlock\Hold;
use Redlock\Hyperf\Annotation\WithLock;
use Redlock\Hyperf\Listener\WorkerListener;
use Redlock\Hyperf\LockedCall;
use Redlock\Hyperf\Locks;
use Redlock\Hyperf\LockSpec;
use Redlock\Tests\Node;
use Redlock\Tests\NodesTestCase;
use Redlock\Tests\Wait;

require_once __DIR__ . '/hyperf.php';

/** What the aspect does, without the framework. */
final class LockedCallTest extends NodesTestCase
{
    private Locks $locks;

    protected function setUp(): void
    {
        parent::setUp();
        $this->locks = new Locks(
            ['default' => ['nodes' => \explode(',', self::cluster()->urls())] + $this->config()], []);
    }

    /** A node that was slow when the locks were released hears of it when the client runs again. */
    protected function assertNothingIsLeft(): void
    {
        $this->assertTrue($this->locks->client()->drain(20000));
        parent::assertNothingIsLeft();
    }

    private function call(array $specs, \Closure $body, array $arguments = ['id' => 7], ?object $instance = null): mixed
    {
        return (new LockedCall($this->locks, 'Orders::pay', $arguments, \array_values($arguments), $instance,
            $body))->run($specs);
    }

    private function held(): array
    {
        $held = \array_keys(\array_filter(self::cluster()->keys(), static fn (int $nodes): bool => $nodes >= 3));
        \sort($held);
        return $held;
    }

    /** As the job of a queue has it, whose handle() has no parameters. */
    public function testAResourceIsMadeOfTheObjectsOwnProperties(): void
    {
        $job = new class (42) extends NamedJob {
            protected ?string $shop = null;

            public function __construct(private readonly int $order)
            {
                parent::__construct('mail');
            }

            public function getShop(): string
            {
                return 'shop 3';
            }
        };
        $spec = new LockSpec(['order:#{this.order}', '#{this.name}', '#{this.shop}', 'of #{this.call.id}']);
        $job->call = ['id' => 7];
        $this->assertSame(['mail', 'of 7', 'order:42', 'shop 3'],
            $this->call([$spec], fn (): array => $this->held(), [], $job));
        $this->expectException(InvalidOptionException::class);
        $this->expectExceptionMessage('#{this.oder} is null');
        $this->call([new LockSpec('#{this.oder}')], $this->fail(...), [], $job);
    }

    /** For tests of an application: its configuration names no nodes. */
    public function testAClusterMayBeInMemory(): void
    {
        $this->locks = new Locks(['default' => ['nodes' => ['memory://'], 'ttl' => '10s']], []);
        $specs = [new LockSpec('order:#{id}', ['wait_ms' => 0])];
        $inside = $this->call($specs, fn (): array => $this->call($specs, fn (): array => [
            Locks::current()->resource, $this->locks->lock('order:7')->tryAcquire(),
            $this->locks->client()->status('order:7')->isHeld()]));
        $this->assertSame(['order:7', false, true], $inside);
        $this->assertTrue($this->locks->client()->status('order:7')->isFree());
        $this->assertSame([], self::cluster()->keys());
    }

    public function testAnotherFiberDoesNotEnterWithItsHold(): void
    {
        $specs = [new LockSpec('order:#{id}', ['wait_ms' => 0])];
        $fiber = new \Fiber(fn () => $this->call($specs, \Fiber::suspend(...)));
        $fiber->start();
        try {
            $this->call($specs, fn () => $this->fail('two are in it'));
        } catch (BusyException $busy) {
            $this->assertSame('order:7', $busy->resource);
        }
        $this->assertNull(Locks::current());
        $fiber->resume();
        $this->call($specs, fn () => $this->assertSame(['order:7'], $this->held()));
        $this->assertNothingIsLeft();
    }

    public function testTheBodyRunsUnderTheLocksInOrder(): void
    {
        $seen = $this->call([new LockSpec('order:#{id}'), new LockSpec('stock')], fn (): array => $this->held());
        $this->assertSame(['order:7', 'stock'], $seen);
        $this->assertNothingIsLeft();
    }

    public function testTheLocksGoWhenTheBodyFails(): void
    {
        try {
            $this->call([new LockSpec('order:#{id}')], static fn () => throw new \DomainException('mine'));
            $this->fail('the error is gone');
        } catch (\DomainException) {
        }
        $this->assertNothingIsLeft();
    }

    public function testTheBodyIsGivenTheFencingNumber(): void
    {
        $spec = [new LockSpec('order:#{id}', ['fence' => true], fence: 'number')];
        $first = $this->call($spec, static fn (array $given): array => $given);
        $second = $this->call([...$spec, new LockSpec('stock')], fn (array $given): array => [
            $given, $this->call($spec, static fn (array $inner): array => $inner)]);
        $this->assertSame(['number'], \array_keys($first));
        $this->assertIsInt($first['number']);
        $this->assertGreaterThan($first['number'], $second[0]['number']);
        $this->assertSame($second[0], $second[1], 'the lock that is held further out has a number, too');
    }

    /** Of each of its locks, also of one that is held further out. */
    public function testTheBodyIsGivenItsHolds(): void
    {
        $specs = [(new WithLock('order:#{id}', fence: 'number', hold: 'order'))->spec(),
            (new WithLock('gpu', permits: 2, hold: 'gpu'))->spec()];
        $this->call($specs, function (array $given) use ($specs): void {
            $this->assertSame(['order:7', 'gpu'], [$given['order']->resource, $given['gpu']->resource]);
            $this->assertSame($given['order']->fence(), $given['number']);
            $this->assertContains($given['gpu']->slot(), [0, 1]);
            $given['order']->check();
            $again = $this->call([$specs[0]], static fn (array $inner): array => $inner);
            $this->assertSame($given['order'], $again['order']);
        });
    }

    public function testAResourceHeldFurtherOutPassesThrough(): void
    {
        $spec = [new LockSpec('order:#{id}')];
        $seen = $this->call($spec, function () use ($spec): array {
            $this->call($spec, static fn () => null);
            return $this->held();
        });
        $this->assertSame(['order:7'], $seen);
        $this->assertNothingIsLeft();
    }

    public function testReadersRunTogetherAndAWriterAlone(): void
    {
        [$read, $write] = [[(new WithLock('order:#{id}', shared: true))->spec()], [new LockSpec('order:#{id}')]];
        $others = $this->locks->lock('order:7', shared: true);
        $writer = $this->locks->lock('order:7');
        $this->assertNotFalse($others->tryAcquire());
        $this->call($read, function () use ($others, $writer): void {
            $others->release();
            $this->assertFalse($writer->tryAcquire(), 'the body reads');
        });
        $inner = $this->call($write, fn (): mixed => $this->call($read, static fn (): mixed => $others->tryAcquire()));
        $this->assertFalse($inner, 'what is held for writing stays so inside');
        $this->assertNothingIsLeft();
    }

    public function testABodyRunsUnderALockThatIsAHash(): void
    {
        $types = $this->call([(new WithLock('order:#{id}', layout: 'hash'))->spec()], static fn (): array => \array_map(
            static fn (Node $node): string => $node->command('TYPE', 'order:7'), self::cluster()->nodes));
        $this->assertContains('hash', $types);
        $this->assertNotContains('string', $types);
        $this->assertNothingIsLeft();
    }

    public function testABodyThatWritesDoesNotRunUnderALockThatOthersHaveToo(): void
    {
        $ran = false;
        $this->expectException(InvalidOptionException::class);
        $this->expectExceptionMessage('Orders::pay: "order:7" is held further out with shared: true');
        try {
            $this->call([new LockSpec('order:#{id}', ['shared' => true])], fn () => $this->call(
                [new LockSpec('order:#{id}')], static function () use (&$ran): void {
                    $ran = true;
                }));
        } finally {
            $this->assertFalse($ran);
            $this->assertNothingIsLeft();
        }
    }

    public function testAMethodThatWantsItAloneDoesNotRunUnderAPermit(): void
    {
        $permit = [(new WithLock('order:#{id}', permits: 2))->spec()];
        $slots = $this->call($permit, fn (): array => $this->call($permit,
            static fn (): array => [Locks::current()->slot(), Locks::current()->isHeld()]));
        $this->assertSame([true, true], [\in_array($slots[0], [0, 1], true), $slots[1]]);
        $this->expectException(InvalidOptionException::class);
        $this->expectExceptionMessage('Orders::pay: "order:7" is held further out with permits: 2');
        try {
            $this->call($permit, fn () => $this->call([new LockSpec('order:#{id}')], fn () => $this->fail('it ran')));
        } finally {
            $this->assertNothingIsLeft();
        }
    }

    public function testAMethodHoldsSeveralResourcesAtOnce(): void
    {
        $both = [(new WithLock(['account:#{from}', 'account:#{to}'], waitMs: 0))->spec()];
        $call = fn (array $accounts, \Closure $body): mixed => $this->call($both, $body, $accounts);
        $seen = $call(['from' => 2, 'to' => 1], function () use ($call): array {
            $inner = $call(['from' => 1, 'to' => 2], fn (): string => Locks::current()->resource);
            $one = $this->call([new LockSpec('account:1')], fn (): array => $this->held());
            $this->assertFalse($this->locks->lock('account:1')->tryAcquire());
            return [$inner, $one];
        });
        $this->assertSame(['account:2', ['account:1', 'account:2']], $seen);
        $this->assertSame(['account:3'], $call(['from' => 3, 'to' => 3], fn (): array => $this->held()));
        $this->locks->lock('account:1')->run(function () use ($call): void {
            $this->expectException(BusyException::class);
            $call(['from' => 2, 'to' => 1], static fn () => throw new \LogicException('it runs'));
        });
    }

    /** @dataProvider heldInPart */
    public function testResourcesOfWhichSomeAreHeldFurtherOutAreRefused(array $outer): void
    {
        $this->expectException(InvalidOptionException::class);
        $this->expectExceptionMessage('Orders::pay: "a" and "b" are not held by one lock further out');
        try {
            $this->call($outer, fn () => $this->call([new LockSpec(['a', 'b'])],
                static fn () => throw new \LogicException('it runs')));
        } finally {
            $this->assertNothingIsLeft();
        }
    }

    public static function heldInPart(): array
    {
        return ['the first' => [[new LockSpec('a')]], 'the second' => [[new LockSpec('b')]],
            'by two locks' => [[new LockSpec('a'), new LockSpec('b')]]];
    }

    public function testALockHoldsSeveralResourcesAtOnce(): void
    {
        $held = $this->locks->lock(['from', 'to'])->run(fn (): array => $this->held());
        $this->assertSame(['from', 'to'], $held);
    }

    public function testABodyDoesNotRunUnderALockThatWasLostFurtherOut(): void
    {
        $spec = [new LockSpec('order:#{id}')];
        $ran = $refused = null;
        try {
            $this->call($spec, function () use ($spec, &$ran, &$refused): void {
                foreach (self::cluster()->nodes as $node) {
                    $node->command('DEL', 'order:7');
                }
                try {
                    Locks::current()->extend();
                } catch (LostException) {
                }
                try {
                    $this->call($spec, static function () use (&$ran): void {
                        $ran = true;
                    });
                } catch (LostException $refused) {
                }
            });
        } catch (LostException) {
        }
        $this->assertNull($ran);
        $this->assertSame(['order:7', 'gone'], [$refused?->resource, $refused?->reason]);
    }

    public function testABodyThatRanAgainUnderALockLearnsThatItWasLost(): void
    {
        $spec = [new LockSpec('order:#{id}')];
        $told = null;
        try {
            $this->call($spec, function () use ($spec, &$told): void {
                try {
                    $this->call($spec, static function (): string {
                        foreach (self::cluster()->nodes as $node) {
                            $node->command('DEL', 'order:7');
                        }
                        try {
                            Locks::current()->extend();
                        } catch (LostException) {
                        }
                        return 'done';
                    });
                } catch (LostException $told) {
                }
            });
            $this->fail('the loss is not told further out');
        } catch (LostException $outer) {
            $this->assertSame('gone', $outer->reason);
        }
        $this->assertSame(['order:7', 'done'], [$told?->resource, $told?->result]);
    }

    public function testALockThatTheBodyHasReleasedIsTakenAgain(): void
    {
        $spec = [new LockSpec('order:#{id}')];
        $seen = $this->call($spec, function () use ($spec): array {
            Locks::current()->release();
            return [$this->held(), $this->call($spec, fn (): array => $this->held()), $this->held()];
        });
        $this->assertSame([[], ['order:7'], []], $seen);
    }

    public function testBusyCallsOnBusyWithTheSameArguments(): void
    {
        $holder = $this->locks->lock('order:7');
        $holder->acquire();
        $instance = new class {
            public function later(int $id): string
            {
                return "later $id";
            }
        };
        $spec = new LockSpec('order:#{id}', ['wait_ms' => 0], onBusy: 'later');
        $this->assertSame('later 7', $this->call([$spec], static fn () => 'now', instance: $instance));
        $this->expectException(BusyException::class);
        $this->call([new LockSpec('order:#{id}', ['wait_ms' => 0])], static fn () => 'now');
    }

    public function testBusyCallsOnBusyOfAStaticMethod(): void
    {
        $holder = $this->locks->lock('order:7');
        $holder->acquire();
        $call = new LockedCall($this->locks, StaticOrders::class . '::pay', ['id' => 7], [7], null, $this->fail(...));
        $this->assertSame('later 7', $call->run([new LockSpec('order:#{id}', ['wait_ms' => 0], onBusy: 'later')]));
    }

    public function testOnBusyAndOnNoQuorumAreToldWhatRefusedTheLock(): void
    {
        $instance = new class {
            public function later(int $id, int $times = 1, ?BusyException $busy = null): string
            {
                return "later $id, $times: " . ($busy?->heldBy['client_name'] ?? 'no holder');
            }

            public function closed(int $id, RedlockThrowable $why): string
            {
                return $why::class;
            }

            public function again(BusyException $before): string
            {
                return $before->getMessage();
            }
        };
        $holder = $this->locks->lock('order:7');
        $holder->acquire();
        $spec = new LockSpec('order:#{id}', ['wait_ms' => 0, 'outage_wait_ms' => 0], onBusy: 'later',
            onNoQuorum: 'later');
        $answers = [];
        Wait::until(function () use ($spec, $instance, &$answers): bool { /* who holds it is asked for 250 ms only */
            $answers[] = $this->call([$spec], static fn () => 'now', instance: $instance);
            return \end($answers) === "later 7, 1: {$this->uniqueName()}";
        }, 'the name of the holder');
        $this->assertLessThan(3, \count(\array_unique($answers)));
        $this->assertSame('of old', $this->call([new LockSpec('order:7', ['wait_ms' => 0], onBusy: 'again')],
            static fn () => 'now', ['before' => new BusyException('of old')], $instance), 'an argument of the method');
        $holder->release();
        foreach ([0, 1, 2] as $i) {
            self::cluster()->nodes[$i]->kill();
        }
        $this->assertSame('later 7, 1: no holder', $this->call([$spec], static fn () => 'now', instance: $instance));
        $spec = new LockSpec('order:#{id}', ['wait_ms' => 0, 'outage_wait_ms' => 0], onNoQuorum: 'closed');
        $this->assertSame(NoQuorumException::class,
            $this->call([$spec], static fn () => 'now', instance: $instance));
    }

    public function testOnBusyIsNotForErrorsOfTheBody(): void
    {
        $spec = new LockSpec('order:#{id}', onBusy: 'later');
        $this->expectException(BusyException::class);
        $this->expectExceptionMessage('of the body');
        $this->call([$spec], static fn () => throw new BusyException('of the body'), instance: new \stdClass());
    }

    public function testATtlIsTakenAsGiven(): void
    {
        self::cluster()->bootstrap(maxTtlMs: 86_400_000);
        $this->locks = new Locks(['default' => ['max_ttl_ms' => 86_400_000] + $this->config()], []);
        $this->call([new LockSpec('x', ['ttl_ms' => 50_000_000])], function (): void {
            $left = \array_map(static fn (Node $node): int => $node->command('PTTL', 'x'), self::cluster()->nodes);
            $this->assertGreaterThanOrEqual(3,
                \count(\array_filter($left, static fn (int $ms): bool => $ms > 49_000_000)));
            $this->assertLessThanOrEqual(50_000_000, \max($left));
        });
    }

    public function testTheBodyReachesItsLocks(): void
    {
        $this->assertNull(Locks::current());
        $names = $this->call([new LockSpec('outer'), new LockSpec('order:#{id}')], function (): array {
            $inner = Locks::current();
            $this->assertTrue($inner->isHeld());
            $this->assertGreaterThan(0, $inner->remainingMs());
            $between = $this->call([new LockSpec('stock')], static fn (): string => Locks::current()->resource);
            return [$inner->resource, $between, Locks::current()->resource];
        });
        $this->assertSame(['order:7', 'stock', 'order:7'], $names);
        $this->assertNull(Locks::current());
    }

    public function testTheBodyReachesItsLockAlsoIfThatIsHeldFurtherOut(): void
    {
        $order = [new LockSpec('order:#{id}')];
        $names = $this->call($order, fn (): array => $this->call([new LockSpec('stock')], fn (): array => [
            $this->call($order, static fn (): string => Locks::current()->resource),
            Locks::current()->resource,
        ]));
        $this->assertSame(['order:7', 'stock'], $names);
    }

    public function testWantOfNodesCallsOnNoQuorum(): void
    {
        foreach ([0, 1, 2] as $i) {
            self::cluster()->nodes[$i]->kill();
        }
        $instance = new class {
            public function closed(int $id): string
            {
                return "closed $id";
            }
        };
        $spec = new LockSpec('order:#{id}', ['outage_wait_ms' => 0], onBusy: 'nothing', onNoQuorum: 'closed');
        $this->assertSame('closed 7', $this->call([$spec], static fn () => 'now', instance: $instance));
        $this->expectException(NoQuorumException::class);
        $this->call([new LockSpec('order:#{id}', ['outage_wait_ms' => 0])], static fn () => 'now');
    }

    public function testAnOptionIsRefusedByTheNameInTheAttribute(): void
    {
        $this->expectException(InvalidOptionException::class);
        $this->expectExceptionMessage('driftFactor is "0.5"; allowed: 0 to 0.1');
        $this->call([new LockSpec('x', ['drift_factor' => 0.5])], static fn () => null);
    }

    public function testAnUnknownClusterIsNamed(): void
    {
        $this->expectException(InvalidOptionException::class);
        $this->expectExceptionMessage('there is no cluster "other" in config/autoload/redlock.php; there are: default');
        $this->call([new LockSpec('x', cluster: 'other')], static fn () => null);
    }

    /** As at a reload, max_request and SIGTERM: OnWorkerExit comes at any time and often, OnWorkerStop last. */
    public function testAWorkerThatWantsToExitCutsNothingShort(): void
    {
        $listener = new WorkerListener($this->locks);
        $dispatch = static function (object $event) use ($listener): void {
            \in_array($event::class, $listener->listen(), true) && $listener->process($event);
        };
        $second = $this->locks->lock('receipt');
        $seen = $this->call([new LockSpec('order:#{id}')], function () use ($dispatch): array {
            $dispatch(WorkerEvent::make(OnWorkerExit::class));
            return $this->held();
        });
        $this->assertSame(['order:7'], $seen);
        $dispatch(WorkerEvent::make(OnWorkerExit::class));
        $this->assertSame(['receipt'], $second->run(fn (): array => $this->held()));
        $this->assertNothingIsLeft();
        $dispatch(WorkerEvent::make(OnWorkerStop::class));
        $this->assertConnections(0);
    }

    public function testTheEndOfTheWorkerLeavesAHeldLockToItsTtl(): void
    {
        $seen = $this->call([new LockSpec('order:#{id}')], function (): array {
            $this->locks->close();
            return $this->held();
        });
        $this->assertSame(['order:7'], $seen);
        $this->assertSame(['order:7'], $this->held());
    }

    /** Each client waits for the node that is stopped: one after the other they take 12 s. */
    public function testClientsLeaveTogether(): void
    {
        $config = ['nodes' => \explode(',', self::cluster()->urls()), 'exit_drain_ms' => 3000] + $this->config();
        $locks = new Locks(['a' => $config + ['key_prefix' => 'a:'], 'b' => $config + ['key_prefix' => 'b:'],
            'c' => $config + ['key_prefix' => 'c:'], 'd' => $config + ['key_prefix' => 'd:']], []);
        $held = [];
        foreach (['a', 'b', 'c', 'd'] as $cluster) {
            self::cluster()->bootstrap(keyPrefix: "$cluster:");
            $held[] = $locks->lock('x', $cluster)->acquire();
            $locks->client($cluster)->status('x'); /* waits for all nodes */
        }
        self::cluster()->nodes[0]->stop();
        \array_map(static fn (Hold $hold) => $hold->release(), $held);
        $begun = \hrtime(true);
        $locks->close();
        $this->assertGreaterThan(2.5e9, \hrtime(true) - $begun);
        $this->assertLessThan(8e9, \hrtime(true) - $begun);
    }

    public function testALockHasTypedOptions(): void
    {
        $lock = $this->locks->lock('typed', ttlMs: 25000, renew: true);
        $lock->acquire();
        $this->assertGreaterThan(20000, $lock->remainingMs());
        $this->assertTrue($lock->isRenewed());
        $lock->release();
        $named = \array_map(static fn (\ReflectionParameter $parameter): string => $parameter->getName(),
            (new \ReflectionMethod(Locks::class, 'lock'))->getParameters());
        $this->assertContains('outageWaitMs', $named);
        $this->expectException(InvalidOptionException::class);
        $this->expectExceptionMessage('there is no option "ttl"');
        $this->locks->lock('typed', ttl: 5);
    }
}

class NamedJob
{
    public mixed $call;

    public function __construct(private readonly string $name)
    {
    }
}

class StaticOrders
{
    public static function later(int $id): string
    {
        return "later $id";
    }
}
