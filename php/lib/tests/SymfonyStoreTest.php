<?php

declare(strict_types=1);

namespace Redlock\Tests;

use Redlock\Client;
use Redlock\Symfony\RedlockStore;
use Redlock\Testing\MemoryClient;
use Symfony\Component\Lock\Exception\ExceptionInterface;
use Symfony\Component\Lock\Exception\InvalidArgumentException;
use Symfony\Component\Lock\Exception\InvalidTtlException;
use Symfony\Component\Lock\Exception\LockAcquiringException;
use Symfony\Component\Lock\Exception\LockConflictedException;
use Symfony\Component\Lock\Exception\LockExpiredException;
use Symfony\Component\Lock\Key;
use Symfony\Component\Lock\LockFactory;
use Symfony\Component\Lock\Store\CombinedStore;
use Symfony\Component\Lock\Strategy\UnanimousStrategy;

final class SymfonyStoreTest extends SymfonyTestCase
{
    // ---- the TTL of the caller

    public function testTheNodesHoldTheTtlOfTheCallerAndTheKeySaysNoMore(): void
    {
        foreach ([20.0, 60.0, 300.0, 4000.0] as $ttl) {
            $lock = $this->factory()->createLock("ttl:$ttl", $ttl, false);
            $this->assertTrue($lock->acquire());
            self::assertLeftMs((int) ($lock->getRemainingLifetime() * 1000), (int) ($ttl * 1000), "ttl:$ttl");
            $this->assertGreaterThan($ttl * 0.97 - 15, $lock->getRemainingLifetime());
            $this->assertLessThan($ttl, $lock->getRemainingLifetime());
        }
    }

    public function testRefreshSetsWhatIsLeftLongerAndShorter(): void
    {
        $lock = $this->factory()->createLock('refreshed', 30, false);
        $lock->acquire();
        $lock->refresh(100);
        self::assertLeftMs(90_000, 100_000, 'refreshed');
        $lock->refresh(8);
        $this->assertLessThan(8.0, $lock->getRemainingLifetime());
        Wait::until(static fn (): bool => \max(self::leftMs('refreshed')) <= 8000, 'every node to be told');
        self::assertLeftMs(1, 8000, 'refreshed');
        $this->assertTrue($lock->isAcquired());
    }

    public function testARefreshThatFailsLeavesTheRenewalAsItWas(): void
    {
        $logger = new MemoryLogger();
        $client = new MemoryClient([], null, $logger);
        $lock = (new LockFactory(new RedlockStore($client)))->createLock('renewed', 300, false);
        $lock->acquire();
        $client->setReachable(false);
        try {
            $lock->refresh(10);
            $this->fail('it was refreshed');
        } catch (LockAcquiringException) {
        }
        unset($lock);
        $this->assertCount(1, $logger->records);
        $this->assertStringContainsString('was wanted for another 300.0 s', $logger->records[0][1]);
    }

    public function testItEndsWhenTheTtlHasPassed(): void
    {
        $lock = $this->factory()->createLock('ends', 4.0, false);
        $lock->acquire();
        $this->assertTrue($lock->isAcquired());
        Wait::until(static fn (): bool => !$lock->isAcquired(), 'the TTL to pass');
        $this->assertTrue($lock->isExpired());
        $this->assertTrue($this->factory()->createLock('ends', 30)->acquire(true));
    }

    public function testTheFactorysDefaultTtlCounts(): void
    {
        $lock = $this->factory()->createLock('default');
        $this->assertTrue($lock->acquire());
        self::assertLeftMs(290_000, 300_000, 'default');
        $lock->release();
        $this->assertFalse($lock->isAcquired());
        $this->assertNothingIsLeft();
    }

    public function testWithoutATtlTheStoresCounts(): void
    {
        $lock = (new LockFactory($this->store(40.0)))->createLock('none', null, false);
        $this->assertTrue($lock->acquire());
        self::assertLeftMs(30_000, 40_000, 'none');
    }

    public function testATtlAboveTheLongestLeaseIsRenewed(): void
    {
        self::cluster()->bootstrap(maxTtlMs: 6000);
        $client = $this->client(nodeTimeoutMs: 'auto', maxTtlMs: 6000, ttlMs: 6000);
        $lock = (new LockFactory(new RedlockStore($client)))->createLock('renewed', 12.0, false);
        $begun = \hrtime(true);
        $lock->acquire();
        $this->assertLessThan(6.0, $lock->getRemainingLifetime(), 'the nodes hold no more');
        Wait::until(static fn (): bool => \hrtime(true) - $begun > 7e9, 'longer than a lease');
        $this->assertTrue($lock->isAcquired());
        Wait::until(static fn (): bool => !$lock->isAcquired(), 'the whole TTL');
        $this->assertGreaterThan(8e9, \hrtime(true) - $begun);
    }

    public function testARenewedLockThatIsRefreshedToLessEnds(): void
    {
        self::cluster()->bootstrap(maxTtlMs: 6000);
        $client = $this->client(nodeTimeoutMs: 'auto', maxTtlMs: 6000, ttlMs: 6000);
        $lock = (new LockFactory(new RedlockStore($client)))->createLock('shortened', 600.0, false);
        $lock->acquire();
        $lock->refresh(5.0);
        Wait::until(static fn (): bool => !$lock->isAcquired(), 'the shorter TTL to pass', 20);
        $this->assertNothingIsLeft();
    }

    public function testALeaseThatIsRefreshedToMoreThanTheLongestIsRenewed(): void
    {
        self::cluster()->bootstrap(maxTtlMs: 6000);
        $client = $this->client(nodeTimeoutMs: 'auto', maxTtlMs: 6000, ttlMs: 6000);
        $lock = (new LockFactory(new RedlockStore($client, 5.0)))->createLock('prolonged', null, false);
        $lock->acquire();
        $lock->refresh(600.0);
        $begun = \hrtime(true);
        Wait::until(static fn (): bool => \hrtime(true) - $begun > 7e9, 'longer than a lease');
        $this->assertTrue($lock->isAcquired());
        $lock->release();
    }

    /** Without a TTL of its own or of the store; with a longer one of the store; with more than max_hold_ms can be. */
    public function testALongOrNoTtlIsRenewedWhileTheProcessRuns(): void
    {
        self::cluster()->bootstrap(maxTtlMs: 6000);
        $client = $this->client(nodeTimeoutMs: 'auto', maxTtlMs: 6000, ttlMs: 6000);
        $factory = new LockFactory(new RedlockStore($client));
        $locks = [$factory->createLock('endless', null), $factory->createLock('years', 366 * 86400.0),
            (new LockFactory(new RedlockStore($client, 300.0)))->createLock('long', null)];
        foreach ($locks as $lock) {
            $this->assertTrue($lock->acquire());
            $this->assertLessThan(6.0, $lock->getRemainingLifetime(), 'the nodes hold no more');
        }
        foreach ([1, 2] as $reader) {
            $locks[] = $lock = $factory->createLock('read', 300.0);
            $this->assertTrue($lock->acquireRead());
        }
        $begun = \hrtime(true);
        Wait::until(static fn (): bool => \hrtime(true) - $begun > 7e9, 'longer than a lease');
        foreach ($locks as $lock) {
            $this->assertTrue($lock->isAcquired());
            $this->assertFalse($lock->isExpired());
            $lock->release();
        }
        $this->assertNothingIsLeft();
    }

    /** What is left when its Key goes, as at the end of a process, may be less than was wanted. */
    public function testALongTtlThatIsCutShortIsWarnedOfOnce(): void
    {
        self::cluster()->bootstrap();
        $log = new MemoryLogger();
        $client = Client::connect(self::cluster()->urls(), $log, ...['clientName' => 'warned'] + self::PATIENCE);
        $factory = new LockFactory(new RedlockStore($client));
        foreach (['short' => 20.0, 'long' => 300.0, 'endless' => null, 'released' => 300.0] as $name => $ttl) {
            $lock = $factory->createLock($name, $ttl, $name === 'released');
            $lock->acquire();
            unset($lock);
        }
        \gc_collect_cycles();
        $warned = [];
        foreach ($log->records as [$level, $words, $context]) {
            $resource = $context['resource'] ?? '';
            \str_contains($words, 'but was wanted') && $warned[$resource] = [$level, \explode(':', $words)[1]];
        }
        $this->assertSame(['long', 'endless'], \array_keys($warned));
        $this->assertMatchesRegularExpression('/^warning: "\{resource\}" ends in (2\d|30)\.\d s, but was wanted for '
            . 'another (29\d|300)\.\d s$/', "{$warned['long'][0]}:{$warned['long'][1]}");
        $this->assertStringEndsWith('but was wanted without end', $warned['endless'][1]);
        self::assertLeftMs(20_000, 30_000, 'long');
        $this->assertFalse($factory->createLock('long')->acquire());
    }

    // ---- what a store promises

    public function testKeysOfOneResourceExcludeEachOther(): void
    {
        $store = $this->store();
        [$first, $second] = [new Key('shared'), new Key('shared')];
        $this->assertFalse($store->exists($first));
        $store->save($first);
        $this->assertTrue($store->exists($first));
        $this->assertFalse($store->exists($second));
        try {
            $store->save($second);
            $this->fail('two holders');
        } catch (LockConflictedException) {
        }
        $store->delete($second);
        $this->assertTrue($store->exists($first));
        $store->delete($first);
        $store->save($second);
        $this->assertFalse($store->exists($first));
        $this->assertTrue($store->exists($second));
    }

    public function testOtherResourcesAreIndependent(): void
    {
        $store = $this->store();
        $store->save($first = new Key('first'));
        $store->save($second = new Key('second'));
        $store->delete($first);
        $this->assertFalse($store->exists($first));
        $this->assertTrue($store->exists($second));
    }

    public function testSaveOfTheSameKeyIsFine(): void
    {
        $store = $this->store();
        $store->save($key = new Key('again'));
        $store->save($key);
        $this->assertTrue($store->exists($key));
        $store->delete($key);
        $this->assertNothingIsLeft();
    }

    public function testAKeyWhoseLeaseHasEndedIsTakenAgain(): void
    {
        $store = $this->store();
        $store->save($key = new Key('anew'));
        $store->putOffExpiration($key, 2.0);
        Wait::until(static fn (): bool => !$store->exists($key), 'the lease to end');
        $key->resetLifetime();
        $store->save($key);
        $this->assertTrue($store->exists($key));
    }

    public function testAnExpiredKeyIsNotSaved(): void
    {
        $store = $this->store();
        $expired = new Key('expired');
        $expired->reduceLifetime(0);
        try {
            $store->save($expired);
            $this->fail('its lifetime is over');
        } catch (LockExpiredException) {
        }
        $this->assertFalse($store->exists($expired));
        $this->assertNothingIsLeft();
        $store->save($key = new Key('expired'));
        $this->assertTrue($store->exists($key));
    }

    public function testATtlThatIsOverBeforeItBeginsIsRefused(): void
    {
        foreach ([1e-6, 0.001, 0.01] as $ttl) {
            $store = $this->store();
            $store->save($key = new Key('short'));
            try {
                $store->putOffExpiration($key, $ttl);
                $this->fail("a lease of $ttl s");
            } catch (LockExpiredException) {
            }
            $this->assertFalse($store->exists($key));
            $this->assertTrue($key->isExpired());
            $this->assertNothingIsLeft();
        }
    }

    public function testWaitAndSaveTakesAKeyThatLapses(): void
    {
        $store = $this->store();
        $store->save($first = new Key('wait'));
        $store->putOffExpiration($first, 2.0);
        $store->waitAndSave($second = new Key('wait'));
        $this->assertTrue($store->exists($second));
        $this->assertFalse($store->exists($first));
    }

    public function testAWaitEndsWhenAnotherProcessReleases(): void
    {
        [$ours, $theirs] = \stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0);
        $pid = \pcntl_fork();
        if ($pid === 0) {
            $store = $this->store(60.0, clientName: 'child');
            $store->save($key = new Key('blocked'));
            \fwrite($theirs, 'held ');
            \fread($theirs, 1);
            $store->delete($key);
            \posix_kill(\posix_getpid(), \SIGKILL);
        }
        $this->assertSame('held ', \fread($ours, 5));
        $store = $this->store();
        try {
            $store->save($key = new Key('blocked'));
            $this->fail('the child holds it');
        } catch (LockConflictedException) {
            \fwrite($ours, 'x');
        }
        $store->waitAndSave($key);
        $this->assertTrue($store->exists($key));
        \pcntl_waitpid($pid, $status);
    }

    public function testDeleteOfWhatIsNotHeldIsFine(): void
    {
        $store = $this->store();
        $store->delete(new Key('never'));
        $store->save($key = new Key('lapsed'));
        $store->putOffExpiration($key, 2.0);
        Wait::until(static fn (): bool => !$store->exists($key), 'the lease to end');
        $store->delete($key);
        $this->assertFalse($store->exists($key));
    }

    public function testATokenThatIsGoneDoesNotExist(): void
    {
        $store = $this->store();
        $store->save($key = new Key('gone'));
        $text = \serialize($key);
        $store->delete($key);
        $continued = \unserialize($text);
        $this->assertFalse($store->exists($continued));
        $this->expectException(LockConflictedException::class);
        $store->putOffExpiration($continued, 5.0);
    }

    public function testAKeyIsHeldInTwoStoresAtOnce(): void
    {
        $memory = new RedlockStore(new MemoryClient());
        $combined = new CombinedStore([$this->store(), $memory], new UnanimousStrategy());
        $lock = (new LockFactory($combined))->createLock('combined', 20.0, false);
        $this->assertTrue($lock->acquire());
        $this->assertTrue($lock->isAcquired());
        self::assertLeftMs(15_000, 20_000, 'combined');
        $this->assertFalse((new LockFactory($combined))->createLock('combined')->acquire());
        $lock->refresh();
        $lock->release();
        $this->assertFalse($lock->isAcquired());
        $this->assertNothingIsLeft();
    }

    public function testALongLeaseEndsByTheClockOfMemory(): void
    {
        $client = new MemoryClient();
        $lock = (new LockFactory(new RedlockStore($client)))->createLock('long', 400.0, false);
        $lock->acquire();
        $client->pass(100_000);
        $lock->refresh(100.0);
        $client->pass(99_000);
        $this->assertTrue($lock->isAcquired());
        $client->pass(2_000);
        $this->assertFalse($lock->isAcquired());
    }

    public function testAKeyOfAClientWithPermitsIsOneOfThem(): void
    {
        $store = $this->store(permits: 2);
        [$one, $two] = [new Key('gpu'), new Key('gpu')];
        $store->save($one);
        $store->save($two);
        $this->assertSame([true, true], [$store->exists($one), $store->exists($two)]);
        $this->client(clientName: 'operator')->remove('gpu', permits: 2);
        $this->assertSame([false, false], [$store->exists($one), $store->exists($two)]);
    }

    public function testTwoStoresOnTheSameNodesHoldAKeyTogether(): void
    {
        $first = $this->store();
        $second = $this->store(60.0, clientName: 'second');
        $first->save($key = new Key('both'));
        $second->save($key);
        $this->assertTrue($first->exists($key) && $second->exists($key));
        $second->delete($key);
        $this->assertFalse($first->exists($key));
        $this->assertNothingIsLeft();
    }

    public function testAStoreThatGoesLeavesItsLocks(): void
    {
        $store = $this->store();
        $store->save($key = new Key('kept'));
        unset($store);
        \gc_collect_cycles();
        self::assertLeftMs(50_000, 60_000, 'kept');
        $other = $this->store(60.0, clientName: 'other');
        $this->assertTrue($other->exists($key));
        $other->delete($key);
        $this->assertNothingIsLeft();
    }

    public function testAKeyThatGoesLeavesItsLock(): void
    {
        $lock = $this->factory()->createLock('left', 60, false);
        $lock->acquire();
        unset($lock);
        \gc_collect_cycles();
        self::assertLeftMs(50_000, 60_000, 'left');
        $released = $this->factory()->createLock('released', 60);
        $released->acquire();
        unset($released);
        Wait::until(static fn (): bool => !isset(self::cluster()->keys()['released']), 'the other to be released');
        $this->addToAssertionCount(1);
    }

    // ---- failures are Symfony's

    public function testAWantOfNodesIsNotWaitedForLong(): void
    {
        $store = $this->store(60.0, outageWaitMs: 200);
        $store->save($held = new Key('held'));
        foreach ([0, 1, 2] as $i) {
            self::cluster()->nodes[$i]->kill();
        }
        try {
            $store->waitAndSave(new Key('nobody'));
            $this->fail('two of five nodes');
        } catch (LockAcquiringException) {
        }
        $this->assertTrue($store->exists($held), 'as far as this process knows');
        $this->expectException(LockAcquiringException::class);
        $store->putOffExpiration($held, 30.0);
    }

    public function testRefusalsAreSymfonys(): void
    {
        $store = $this->store();
        $store->save($held = new Key('held'));
        $strict = $this->store(60.0, clientName: 'strict', nodeTimeoutMs: 2000);
        $strict->save($slow = new Key('slow'));
        $foreign = new Key('foreign');
        $this->factory()->createLockFromKey($foreign, 60, false)->acquire();
        $refused = [
            [InvalidTtlException::class, static fn () => $store->putOffExpiration($held, 0.0)],
            [InvalidTtlException::class, static fn () => $store->putOffExpiration($held, -1.0)],
            [InvalidTtlException::class, static fn () => $store->putOffExpiration($held, \NAN)],
            [InvalidTtlException::class, static fn () => $store->putOffExpiration($held, \INF)],
            [InvalidTtlException::class, static fn () => $strict->putOffExpiration($slow, 0.5)],
            [InvalidTtlException::class, fn () => new RedlockStore($this->client(), 0.0)],
            [InvalidArgumentException::class, static fn () => $store->save(new Key(''))],
            [LockConflictedException::class, static fn () => $store->putOffExpiration(new Key('held'), 5.0)],
            [LockConflictedException::class, static fn () => $store->save(new Key('foreign'))],
        ];
        foreach ($refused as $number => [$class, $call]) {
            try {
                $call();
                $this->fail("nothing was refused in case $number");
            } catch (ExceptionInterface $e) {
                $this->assertInstanceOf($class, $e, "case $number: {$e->getMessage()}");
            }
        }
        $this->assertTrue($store->exists($held));
    }
}
