<?php

declare(strict_types=1);

namespace Redlock\Tests;

use Redlock\Symfony\RedlockStore;
use Symfony\Component\Lock\Exception\LockAcquiringException;
use Symfony\Component\Lock\Exception\LockConflictedException;
use Symfony\Component\Lock\Exception\LockExpiredException;
use Symfony\Component\Lock\Key;
use Symfony\Component\Lock\LockFactory;

final class SymfonyStoreTest extends NodesTestCase
{
    private function store(float $ttl = 10.0): RedlockStore
    {
        return new RedlockStore($this->client(nodeTimeoutMs: (int) \min(2000, $ttl * 250)), $ttl);
    }

    public function testTheFactoryWithItsDefaultTtl(): void
    {
        $factory = new LockFactory(new RedlockStore($this->client()));
        $lock = $factory->createLock('invoice');
        $this->assertTrue($lock->acquire());
        $this->assertTrue($lock->isAcquired());
        $this->assertFalse($factory->createLock('invoice')->acquire());
        $this->assertGreaterThan(200, $lock->getRemainingLifetime());
        $lock->refresh();
        $lock->release();
        $this->assertFalse($lock->isAcquired());
        $this->assertNothingIsLeft();
    }

    public function testALongTtlIsARenewedLease(): void
    {
        $client = $this->client(nodeTimeoutMs: 500, maxTtlMs: 4000, ttlMs: 4000);
        $lock = (new LockFactory(new RedlockStore($client, 7.0)))->createLock('renewed', 7.0);
        $begun = \hrtime(true);
        $lock->acquire();
        Wait::until(static fn (): bool => \hrtime(true) - $begun > 4.5e9, 'longer than a lease');
        $this->assertTrue($lock->isAcquired());
        Wait::until(static fn (): bool => !$lock->isAcquired(), 'the whole TTL');
        $this->assertGreaterThan(5e9, \hrtime(true) - $begun);
    }

    public function testSaveOfTheSameKeyExtends(): void
    {
        $store = $this->store();
        $key = new Key('again');
        $store->save($key);
        $store->save($key);
        $this->assertTrue($store->exists($key));
        $this->expectException(LockConflictedException::class);
        $store->save(new Key('again'));
    }

    public function testTheLifetimeIsTheRealValidity(): void
    {
        $store = $this->store(5.0);
        $key = new Key('validity');
        $store->save($key);
        $this->assertLessThan(4.96, $key->getRemainingLifetime()); /* less the drift */
        $store->putOffExpiration($key, 20.0);
        $key->resetLifetime();
        $store->putOffExpiration($key, 20.0);
        $this->assertGreaterThan(15, $key->getRemainingLifetime());
    }

    public function testASerialisedKeyGoesOnElsewhere(): void
    {
        $key = new Key('elsewhere');
        $this->store()->save($key);
        $text = \serialize($key);
        unset($key);
        \gc_collect_cycles();
        $this->assertGreaterThanOrEqual(3, self::cluster()->keys()['elsewhere']);

        $other = new RedlockStore($this->client(clientName: 'elsewhere'), 10.0);
        $continued = \unserialize($text);
        $this->assertTrue($other->exists($continued));
        $other->putOffExpiration($continued, 10.0);
        $other->delete($continued);
        $this->assertFalse($other->exists($continued));
        $this->assertNothingIsLeft();
    }

    public function testATokenThatIsGoneDoesNotExist(): void
    {
        $store = $this->store();
        $key = new Key('gone');
        $store->save($key);
        $text = \serialize($key);
        $store->delete($key);
        $continued = \unserialize($text);
        $this->assertFalse($store->exists($continued));
        $this->expectException(LockConflictedException::class);
        $store->putOffExpiration($continued, 5.0);
    }

    public function testWaitAndSave(): void
    {
        $short = $this->store(1.0);
        $short->save($first = new Key('wait'));
        $store = $this->store();
        $store->waitAndSave($second = new Key('wait'));
        $this->assertTrue($store->exists($second));
        $this->assertFalse($short->exists($first));
    }

    public function testAWantOfNodesIsNotWaitedFor(): void
    {
        foreach ([0, 1, 2] as $i) {
            self::cluster()->nodes[$i]->kill();
        }
        $store = $this->store();
        $this->expectException(LockAcquiringException::class);
        $store->waitAndSave(new Key('nobody'));
    }

    public function testATtlTooShortForTheCoreExpiresAndDeletes(): void
    {
        $store = $this->store();
        $key = new Key('short');
        $store->save($key);
        try {
            $store->putOffExpiration($key, 0.001);
            $this->fail('a lease of 1 ms');
        } catch (LockExpiredException) {
        }
        $this->assertFalse($store->exists($key));
        $this->assertNothingIsLeft();
    }

    public function testDeleteOfWhatIsNotHeldIsFine(): void
    {
        $store = $this->store(1.0);
        $store->delete(new Key('never'));
        $store->save($key = new Key('lapsed'));
        Wait::until(static fn (): bool => !$store->exists($key), 'the lease to end');
        $store->delete($key);
        $this->assertFalse($store->exists($key));
    }
}
