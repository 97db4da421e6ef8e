<?php

declare(strict_types=1);

namespace Redlock\Tests;

use PHPUnit\Framework\TestCase;
use Redlock\Client;
use Redlock\ClientInterface;
use Redlock\Exception\BusyException;
use Redlock\Exception\InvalidOptionException;
use Redlock\Exception\LimitException;
use Redlock\Exception\LostException;
use Redlock\Exception\NoQuorumException;
use Redlock\Exception\NotHeldException;
use Redlock\Hold;
use Redlock\LockInterface;
use Redlock\Testing\MemoryClient;
use Redlock\Verdict;

/** The client for users' unit tests, and that mocks can be made of the interfaces. */
final class MemoryClientTest extends TestCase
{
    private MemoryClient $client;

    protected function setUp(): void
    {
        $this->client = new MemoryClient(['ttl_ms' => 1000]);
    }

    public function testALockHasOneHolderAtATime(): void
    {
        $first = $this->client->lock('orders:42');
        $first->acquire();
        $second = $this->client->lock('orders:42');
        $this->assertFalse($second->tryAcquire());
        try {
            $second->acquire(0);
            $this->fail('two holders');
        } catch (BusyException $busy) {
            $this->assertSame(['orders:42', \REDLOCK_BUSY], [$busy->resource, $busy->status]);
        }
        $this->assertTrue($this->client->status('orders:42')->isHeld());
        $first->release();
        $this->assertNotFalse($second->tryAcquire());
        $this->assertMatchesRegularExpression('/^[0-9a-f]{40}$/', $second->token());
    }

    public function testAReentrantLockIsReleasedAsOftenAsItWasTaken(): void
    {
        $lock = $this->client->lock('tree', reentrant: true);
        $lock->acquire();
        $lock->run(fn () => $this->assertNotFalse($lock->tryAcquire()));
        $lock->release();
        $this->assertTrue($this->client->status('tree')->isHeld());
        $lock->release();
        $this->assertFalse($this->client->status('tree')->isHeld());
        $lock->acquire();
        $lock->acquire();
        $this->client->lose('tree');
        foreach ([$lock->acquire(...), $lock->release(...), $lock->acquire(...), $lock->release(...)] as $call) {
            try {
                $call();
                $this->fail('a lost lock was taken again');
            } catch (LostException) {
            }
        }
        $lock->acquire();
        $this->assertTrue($lock->isHeld());
    }

    public function testTryAcquireMayWaitAndAnAdoptedLockHasOptions(): void
    {
        $first = $this->client->lock('orders:42', ttlMs: 500);
        $first->acquire();
        $second = $this->client->lock('orders:42');
        $this->assertFalse($second->tryAcquire(499));
        $this->assertNotFalse($second->tryAcquire(1));
        $adopted = $this->client->adopt('orders:42', $second->detach(), ttlMs: 1700, renew: true);
        $adopted->extend();
        $this->assertTrue($adopted->isRenewed());
        $this->client->pass(5000);
        $this->assertSame(1700, $adopted->remainingMs());
    }

    public function testTimeIsTheTestsOwn(): void
    {
        $lock = $this->client->lock('report', ttlMs: 5000);
        $lock->acquire();
        $this->client->pass(4000);
        $this->assertSame(1000, $lock->remainingMs());
        $lock->extend();
        $this->assertSame(5000, $lock->remainingMs());
        $lock->extend(2000); /* never shortened */
        $this->assertSame(5000, $lock->remainingMs());
        $lock->expire(100);
        $this->assertSame(100, $lock->remainingMs());
        $this->client->pass(100);
        $this->assertTrue($lock->isLost());
        $this->expectException(LostException::class);
        $lock->release();
    }

    public function testAWaitLetsTimePass(): void
    {
        $this->client->lock('queue')->acquire();
        $holder = $this->client->lock('queue');
        $holder->acquire(); /* the first object is gone, and its lock with it */
        $waiter = $this->client->lock('queue');
        try {
            $waiter->acquire(999);
            $this->fail('the lease of the holder has a ms left');
        } catch (BusyException) {
        }
        $this->assertSame(1, $holder->remainingMs());
        $waiter->acquire(1);
        $this->assertTrue($holder->isLost());
        $this->assertTrue($waiter->isHeld());
    }

    public function testRunRenewsAndReleases(): void
    {
        $result = $this->client->lock('job')->run(function (Hold $lock): string {
            $this->client->pass(60000);
            $this->assertTrue($lock->isHeld() && $lock->isRenewed());
            return 'done';
        });
        $this->assertSame('done', $result);
        $this->assertTrue($this->client->status('job')->isFree());
        try {
            $this->client->lock('job')->run(static fn () => throw new \DomainException('mine'));
        } catch (\DomainException) {
            $this->assertTrue($this->client->status('job')->isFree());
        }
    }

    public function testALossCanBeMade(): void
    {
        try {
            $this->client->lock('job')->run(function (Hold $lock): int {
                $this->client->lose('job');
                $this->assertTrue($lock->isLost());
                return 42;
            });
            $this->fail('the loss was not told');
        } catch (LostException $lost) {
            $this->assertSame(42, $lost->result);
        }
    }

    /** @dataProvider losses */
    public function testALossHasTheReasonOfThoseOnNodes(string $reason, \Closure $call): void
    {
        $this->assertSame($reason, self::refusal(LostException::class, fn () => $call($this->client))->reason);
    }

    public static function losses(): array
    {
        return [
            'lost' => ['gone', static fn (MemoryClient $client) => $client->lock('r')->run(
                static fn () => $client->lose('r'))],
            'lost after renewals' => ['gone', static fn (MemoryClient $client) => $client->lock('r')->run(
                static fn () => $client->pass(60000) ?? $client->lose('r'))],
            'removed' => ['gone', static function (MemoryClient $client): void {
                $hold = $client->lock('r')->acquire();
                $client->remove('r');
                $hold->extend();
            }],
            'adopted too late' => ['gone', static fn (MemoryClient $client) =>
                $client->adopt('r', \str_repeat('0', 40))->extend()],
            'over' => ['expired', static function (MemoryClient $client): void {
                $hold = $client->lock('r')->acquire();
                $client->pass(60000);
                $hold->release();
            }],
        ];
    }

    public function testAnOutageCanBeMade(): void
    {
        $held = $this->client->lock('held', renew: true);
        $held->acquire();
        $this->client->setReachable(false);
        try {
            $this->client->lock('other')->acquire(0);
            $this->fail('a lock from nowhere');
        } catch (NoQuorumException) {
        }
        $this->assertSame(Verdict::Unknown, $this->client->status('held')->verdict);
        $this->client->pass(1000);
        $this->assertTrue($held->isLost());
        $this->client->setReachable(true);
        $this->client->lock('held')->acquire(0);
        $this->addToAssertionCount(1);
    }

    public function testATokenIsHandedOver(): void
    {
        $lock = $this->client->lock('handed');
        $lock->acquire();
        $token = $lock->detach();
        unset($lock);
        $other = (new MemoryClient([], $this->client->store))->adopt('handed', $token);
        $other->extend();
        $this->assertTrue($other->isHeld());
        $other->release();
        $this->expectException(NotHeldException::class);
        $other->release();
    }

    public function testAForgottenLockIsReleased(): void
    {
        $lock = $this->client->lock('forgotten');
        $lock->acquire();
        unset($lock);
        $this->assertTrue($this->client->status('forgotten')->isFree());
    }

    public function testOptionsAreChecked(): void
    {
        $this->assertSame(['1000', '15000', 'false', '200'],
            \array_map($this->client->option(...), ['ttl_ms', 'wait_ms', 'renew', 'retry_delay_ms']));
        $this->expectException(InvalidOptionException::class);
        $this->expectExceptionMessage('ttlMz');
        $this->client->lock('x', ttlMz: 1);
    }

    /** @dataProvider refused */
    public function testWhatNodesRefuseIsRefusedInTheSameWords(\Closure $call): void
    {
        $said = [];
        $real = Client::fromArray(['nodes' => 'unix:///dev/null/redlock', 'ttl_ms' => 1000]);
        foreach ([$real, $this->client] as $client) {
            try {
                $call($client);
                $this->fail($client::class . ' refuses nothing');
            } catch (\ValueError $refused) {
                $said[] = \preg_replace('/^[^ ]*::/', '', $refused->getMessage());
            }
        }
        $this->assertSame($said[0], $said[1]);
    }

    public static function refused(): array
    {
        return [
            'a TTL too long' => [static fn (ClientInterface $c) => $c->lock('x', ttlMs: 60000)->acquire(0)],
            'a TTL too short' => [static fn (ClientInterface $c) => $c->lock('x', ttlMs: 5)],
            'the same in an array' => [static fn (ClientInterface $c) => $c->lockFromArray('x', ['ttl_ms' => 5])],
            'a time without a unit' => [static fn (ClientInterface $c) => $c->lockFromArray('x', ['ttl' => '5'])],
            'a pause' => [static fn (ClientInterface $c) => $c->lock('x', retryDelayMs: 0)],
            'a time-out' => [static fn (ClientInterface $c) => $c->lock('x', nodeTimeoutMs: 900)->acquire(0)],
            'a slot without permits' => [static fn (ClientInterface $c) => $c->lock('x', slot: 3)->acquire(0)],
            'an option of the client' => [static fn (ClientInterface $c) => $c->lock('x', keyPrefix: 'y')],
            'a name of the library' => [static fn (ClientInterface $c) => $c->lock('libredlock:x')->acquire(0)],
            'no resource' => [static fn (ClientInterface $c) => $c->lock('')],
            'a wait' => [static fn (ClientInterface $c) => $c->lock('x')->acquire(-5)],
            'a wait that is tried' => [static fn (ClientInterface $c) => $c->lock('x')->tryAcquire(-5)],
            'a wait of run()' => [static fn (ClientInterface $c) => $c->lock('x')->run(static fn () => 1, -5)],
            'an unknown option' => [static fn (ClientInterface $c) => $c->lock('x')->with(nosuch: 1)],
            'another value' => [static fn (ClientInterface $c) => $c->lock('x')->with(ttlMs: 5)],
            'an extension' => [static fn (ClientInterface $c) => $c->adopt('x', \str_repeat('a', 40))->extend(0)],
            'several with permits' => [static fn (ClientInterface $c) => $c->lock(['x', 'y'], permits: 2)->acquire(0)],
            'readers of permits' => [static fn (ClientInterface $c)
                => $c->lock('x', permits: 2, shared: true)->acquire(0)],
            'a default' => [static fn (ClientInterface $c) => $c instanceof Client
                ? Client::fromArray(['nodes' => 'redis://a', 'max_ttl_ms' => 5])
                : new MemoryClient(['max_ttl_ms' => 5])],
        ];
    }

    public function testWhatIsHeldIsNotExtendedByMoreThanNodesAllow(): void
    {
        $this->client->lock('job')->run(function (Hold $lock): void {
            foreach ([$lock->extend(...), $lock->expire(...)] as $call) {
                try {
                    $call(60000);
                    $this->fail('a lease of a minute');
                } catch (InvalidOptionException $refused) {
                    $this->assertStringStartsWith('ttlMs 60000 is above maxTtlMs, 30000', $refused->getMessage());
                }
            }
        });
        $long = new MemoryClient(['max_ttl' => '2m', 'ttl' => '1m']);
        $this->assertNotFalse($long->lock('job')->tryAcquire());
        $this->assertTrue($long->status('job')->isFree(), 'the object has gone');
    }

    public function testTheLimitsOfAHoldAreThoseOnNodes(): void
    {
        $often = $this->client->lock('often', maxExtensions: 1)->acquire();
        $long = $this->client->lock('long', maxHoldMs: 1500)->acquire();
        \array_map(static fn (Hold $hold) => $hold->extend(), [$often, $long]);
        $this->client->pass(900);
        $refused = ['often' => 'no further extension: max_extensions is 1',
            'long' => 'no further extension by ttl_ms 1000: max_hold_ms is 1500, held for 900 ms'];
        foreach ([$often, $long] as $hold) {
            $words = "\"{$hold->resource()}\": {$refused[$hold->resource()]}";
            $this->assertSame($words, self::refusal(LimitException::class, $hold->extend(...))->getMessage());
        }
        $long->extend(600);
        $often->expire(600);
        $renewed = $this->client->lock('renewed', renew: true, maxHoldMs: 5000)->acquire();
        $waited = $this->client->lock('renewed')->acquire(10_000);
        $this->assertSame('limit', self::refusal(LostException::class, $renewed->check(...))->reason);
        $this->assertSame(900 + 5000, $this->client->store->nowMs);
        $waited->release();
    }

    public function testAFencedHoldIsDowngraded(): void
    {
        $hold = $this->client->lock('pages', fence: true)->acquire();
        $hold->downgrade();
        $this->assertNotFalse($this->client->lock('pages', shared: true)->tryAcquire());
        $this->assertTrue($hold->isHeld());
    }

    public function testWhatIsAdoptedIsCheckedAsTheCoreDoes(): void
    {
        foreach ([['pages', ''], ['pages', \str_repeat('a', 2000)], ['pages', 'xyz', 'shared' => true]] as $call) {
            self::refusal(InvalidOptionException::class, fn () => $this->client->adopt(...$call));
        }
        $token = \str_repeat('ab', 20);
        $this->assertSame($token, $this->client->adopt('pages', $token)->detach());
        $this->assertTrue($this->client->status('pages')->isFree());
        $broken = $this->client->lock('pages', permits: 2, fence: true);
        self::refusal(InvalidOptionException::class, $broken->status(...));
    }

    /** @param class-string<\Throwable> $class */
    private static function refusal(string $class, \Closure $call): \Throwable
    {
        try {
            $call();
        } catch (\Throwable $refusal) {
            self::assertInstanceOf($class, $refusal);
            return $refusal;
        }
        self::fail("no $class");
    }

    public function testKindsAreAsOnNodes(): void
    {
        $gpu = $this->client->lock('gpu', permits: 2);
        [$one, $two] = [$gpu->acquire(), $gpu->acquire()];
        $this->assertSame([0, 1, false], [$one->slot(), $two->slot(), $gpu->tryAcquire()]);
        $this->assertFalse($this->client->lock('gpu')->tryAcquire(), 'a plain lock takes the first permit');
        $one->release();
        $this->assertSame(0, $gpu->acquire()->slot());
        $reader = $this->client->lock('report', shared: true);
        [$one, $two] = [$reader->acquire(), $reader->acquire()];
        $this->assertSame(Verdict::Shared, $this->client->status('report')->verdict);
        $this->assertFalse($this->client->lock('report')->tryAcquire());
        $one->release();
        $two->release();
        $writer = $this->client->lock('report')->acquire();
        $this->assertFalse($reader->tryAcquire());
        $writer->downgrade();
        $this->assertNotFalse($reader->tryAcquire());
        $both = $this->client->lock(['a', 'b'])->acquire();
        $this->assertFalse($this->client->lock(['b', 'c'])->tryAcquire());
        $this->assertTrue($this->client->status('c')->isFree());
        $both->release();
        $this->assertNotFalse($this->client->lock(['b', 'c'])->tryAcquire());
        $defaults = new MemoryClient(['permits' => 2]);
        $held = $defaults->lock('gpu')->acquire();
        $this->assertSame([0, 1], [$held->slot(), $defaults->lock('gpu')->acquire()->slot()]);
    }

    public function testATokenOfAnotherLockIsNotReleased(): void
    {
        foreach ([['r', false, 'other', LostException::class], ['s', true, 's', BusyException::class]] as $case) {
            [$resource, $isShared, $adopted, $failure] = $case;
            $token = $this->client->lock($resource, shared: $isShared)->acquire()->detach();
            foreach (['extend', 'release'] as $act) {
                self::refusal($failure, fn () => $this->client->adopt($adopted, $token)->$act());
            }
            $this->assertSame($token, $this->client->status($resource)->token);
        }
    }

    public function testStatusAndRemoveAreAsOnNodes(): void
    {
        $gpu = $this->client->lock('gpu', permits: 3);
        $holds = [$gpu->acquire(), $gpu->acquire()];
        $status = $gpu->status();
        $this->assertSame(['"gpu": 2 of 3 permits held', Verdict::Free], [$status->message, $status->verdict]);
        $this->assertSame([$holds[0]->token(), $holds[1]->token(), null], \array_column($status->parts, 'token'));
        $this->assertSame([1000, 1000, null], \array_column($status->parts, 'remainingMs'));
        $this->assertSame($holds[0]->token(), $this->client->status('gpu')->token, 'without permits the first');
        $this->client->remove('gpu', permits: 3, slot: 1);
        $this->assertSame([true, false], \array_map(static fn (Hold $hold): bool => $hold->isHeld(), $holds));
        $this->client->remove('gpu', permits: 3);
        $this->assertTrue($holds[0]->isLost());
        $both = $this->client->lock(['a', 'b'])->acquire();
        $this->assertSame([$both->token(), null], \array_column($this->client->status(['b', 'c'])->parts, 'token'));
        $this->client->setReachable(false);
        $this->expectException(NoQuorumException::class);
        $this->client->remove('a');
    }

    /** For code whose client is made from configuration. */
    public function testTheNodesOfAConfigurationMayBeMemory(): void
    {
        $dispatcher = new Dispatcher();
        $one = Client::connect('memory://', dispatcher: $dispatcher, ttlMs: 1000);
        $this->assertInstanceOf(MemoryClient::class, $one);
        $hold = $one->lock('job')->acquire();
        $this->assertSame(['Acquired'], $dispatcher->names());
        \putenv('REDLOCK_NODES=memory://');
        try {
            $others = [Client::connect(), Client::fromArray(['nodes' => ['memory://'], 'ttl' => '2s'])];
        } finally {
            \putenv('REDLOCK_NODES');
        }
        foreach ($others as $other) {
            $this->assertFalse($other->lock('job')->tryAcquire());
        }
        $this->assertNotFalse($this->client->lock('job')->tryAcquire(), 'that has a store of its own');
        $this->assertSame('2000', $others[1]->option('ttl_ms'));
        $this->assertSame(['memory'], \array_column($one->check()['nodes'], 'node'));
        $one->pass(1000);
        $this->assertNotFalse($others[0]->lock('job')->tryAcquire());
        $this->assertTrue($hold->isLost());
        $this->expectExceptionMessage('ttlMs is "5"');
        Client::connect('memory://', ttlMs: 5);
    }

    public function testAClientThatLeavesReleasesWhatIsItsOwn(): void
    {
        $other = new MemoryClient([], $this->client->store);
        [$mine, $theirs] = [$this->client->lock('mine')->acquire(), $other->lock('theirs')->acquire()];
        $this->assertTrue(Client::drainAll([$this->client]));
        $this->assertSame([true, true], [$other->status('mine')->isFree(), $theirs->isHeld()]);
        try {
            $mine->check();
            $this->fail('it is held');
        } catch (LostException $lost) {
            $this->assertSame('closed', $lost->reason);
        }
        $this->assertTrue($other->drain());
        $this->assertTrue($theirs->isLost());
    }

    public function testTheInterfacesCanBeMocked(): void
    {
        $lock = $this->createMock(LockInterface::class);
        $lock->expects($this->once())->method('run')->willReturnCallback(static fn (callable $body) => $body($lock));
        $client = $this->createMock(ClientInterface::class);
        $client->method('lock')->with('orders:42')->willReturn($lock);
        $this->assertSame(7, $client->lock('orders:42')->run(static fn (): int => 7));
    }

    public function testItsLocksAreListed(): void
    {
        $client = new MemoryClient(['ttl_ms' => 1000]);
        $hold = $client->lock('orders:42')->acquire();
        $readers = [$client->lock('shared', shared: true)->acquire(), $client->lock('shared', shared: true)->acquire()];
        $this->assertCount(2, $readers);
        [$one, $other] = $client->locks()->locks;
        $this->assertSame(['orders:42', $hold->token(), Verdict::Held], [$one->resource, $one->token, $one->verdict]);
        $this->assertSame(['shared', Verdict::Shared], [$other->resource, $other->verdict]);
        $this->assertCount(1, $client->locks('o*'));
        $permit = $client->lock('gpu', permits: 3, slot: 2)->acquire();
        [$listed] = $client->locks('gpu')->locks;
        $this->assertSame(['permits', 2, 3, $permit->token()],
            [$listed->kind, $listed->slot, $listed->permits, $listed->token]);
        $hash = $client->lock('hash', layout: 'hash')->acquire();
        $this->assertSame('hash', $client->locks($hash->resource())->locks[0]->kind);
        $client->setReachable(false);
        $this->expectException(NoQuorumException::class);
        $client->locks();
    }
}
