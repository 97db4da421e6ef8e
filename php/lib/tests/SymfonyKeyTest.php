<?php

declare(strict_types=1);

namespace Redlock\Tests;

use Redlock\Symfony\RedlockStore;
use Symfony\Component\Lock\Exception\LockConflictedException;
use Symfony\Component\Lock\Key;
use Symfony\Component\Lock\LockFactory;

final class SymfonyKeyTest extends SymfonyTestCase
{
    public function testASerialisedKeyGoesOnElsewhere(): void
    {
        $key = new Key('elsewhere');
        $this->factory()->createLockFromKey($key, 300, false)->acquire();
        $text = \serialize($key);
        unset($key);
        \gc_collect_cycles();
        $other = $this->store(60.0, clientName: 'elsewhere');
        $continued = \unserialize($text);
        self::assertLeftMs((int) ($continued->getRemainingLifetime() * 1000), 300_000, 'elsewhere');
        $this->assertTrue($other->exists($continued));
        self::assertLeftMs(280_000, 300_000, 'elsewhere');
        $other->putOffExpiration($continued, 10.0);
        $this->assertLessThanOrEqual(10_000, \min(self::leftMs('elsewhere')));
        $other->delete($continued);
        $this->assertFalse($other->exists($continued));
        $this->assertNothingIsLeft();
    }

    /** As Messenger does: the Key goes with the message, and the worker refreshes and releases what it continues. */
    public function testAWorkerGoesOnWithASerialisedKey(): void
    {
        self::cluster()->bootstrap();
        $key = new Key('message');
        $factory = $this->usual('web');
        $factory->createLockFromKey($key, 25, false)->acquire();
        $message = \serialize(['order' => 42, 'key' => $key]);
        unset($key);
        $worked = $this->inChild(function () use ($message): string {
            $lock = $this->usual('worker')->createLockFromKey(\unserialize($message)['key'], 20);
            $lock->refresh(8);
            $refreshed = $lock->isAcquired() && $lock->getRemainingLifetime() < 8 ? 'refreshed' : 'not refreshed';
            $lock->refresh();
            $longer = $lock->getRemainingLifetime() > 10 ? 'longer' : 'not longer';
            $lock->release();
            return "$refreshed, $longer, " . ($lock->isAcquired() ? 'still held' : 'released');
        });
        $this->assertSame('refreshed, longer, released', $worked);
        $this->assertTrue($factory->createLock('message', 25)->acquire());
    }

    public function testAWorkerAcquiresALockMadeFromAKey(): void
    {
        self::cluster()->bootstrap();
        $key = new Key('continued');
        $this->usual('web')->createLockFromKey($key, 25, false)->acquire();
        $text = \serialize($key);
        $this->assertSame('acquired', $this->inChild(function () use ($text): string {
            $lock = $this->usual('worker')->createLockFromKey(\unserialize($text), 20);
            return $lock->acquire() && $lock->isAcquired() ? 'acquired' : 'refused';
        }));
    }

    /** With the default of maxTtlMs. */
    private function usual(string $name): LockFactory
    {
        $client = $this->client(nodeTimeoutMs: 'auto', clientName: \substr("$name-{$this->uniqueName()}", 0, 64));
        return new LockFactory(new RedlockStore($client));
    }

    public function testAnotherProcessMayEndWhatThisOneBegan(): void
    {
        $store = $this->store();
        $store->save($key = new Key('handed'));
        $this->assertTrue($store->exists($key));
        $worker = $this->store(60.0, clientName: 'worker');
        $worker->delete(\unserialize(\serialize($key)));
        $worker->save(new Key('handed'));
        $this->assertFalse($store->exists($key));
        $this->expectException(LockConflictedException::class);
        $store->putOffExpiration($key, 5.0);
    }
}
