<?php

declare(strict_types=1);

namespace Redlock\Tests;

use Symfony\Component\Lock\Exception\LockConflictedException;
use Symfony\Component\Lock\Key;

final class SymfonyReadersTest extends SymfonyTestCase
{
    /** On a majority: a node that was too late for the first request is not sent the second one either. */
    private function assertType(string $type, string $resource): void
    {
        $nodes = self::cluster()->nodes;
        $isSo = static fn (Node $node): bool => $node->command('TYPE', $resource) === $type;
        Wait::until(static fn (): bool => 2 * \count(\array_filter($nodes, $isSo)) > \count($nodes),
            "$resource to be a $type on a majority");
        $this->addToAssertionCount(1);
    }

    private function assertConflict(\Closure $call, string $words): void
    {
        try {
            $call();
        } catch (LockConflictedException $refused) {
            $this->assertStringContainsString($words, $refused->getMessage());
            return;
        }
        $this->fail('it was not refused');
    }

    public function testReadersHoldTogetherAndAWriterAlone(): void
    {
        [$one, $two] = [$this->store(), $this->store(60.0, clientName: 'two')];
        [$first, $second, $writer] = [new Key('read'), new Key('read'), new Key('read')];
        $one->saveRead($first);
        $two->saveRead($second);
        $this->assertTrue($one->exists($first) && $two->exists($second));
        $this->assertConflict(static fn () => $two->save($writer), 'held by');
        $one->delete($first);
        $this->assertFalse($one->exists($first));
        $this->assertTrue($two->exists($second));
        $two->delete($second);
        $two->waitAndSave($writer);
        $this->assertType('string', 'read');
        $this->assertConflict(static fn () => $one->saveRead($first), 'held by');
        $this->assertTrue($two->exists($writer));
        $two->delete($writer);
        $this->assertNothingIsLeft();
    }

    public function testAReaderIsRefreshedAndReleasedThroughTheLock(): void
    {
        $lock = $this->factory()->createLock('refreshed', 30, false);
        $this->assertTrue($lock->acquireRead());
        $this->assertTrue($this->factory(clientName: 'two')->createLock('refreshed', 20)->acquireRead(true));
        $lock->refresh(100);
        self::assertLeftMs(90_000, 100_000, 'refreshed');
        $lock->refresh(8);
        $this->assertLessThan(8.0, $lock->getRemainingLifetime());
        $this->assertTrue($lock->isAcquired());
        $lock->release();
        $this->assertFalse($lock->isAcquired());
        $this->assertNothingIsLeft();
    }

    public function testAWriterGoesOnForReading(): void
    {
        [$store, $others] = [$this->store(), $this->store(60.0, clientName: 'others')];
        $store->save($key = new Key('demoted'));
        $store->saveRead($key);
        $this->assertType('zset', 'demoted');
        $others->saveRead($reader = new Key('demoted'));
        $this->assertTrue($store->exists($key) && $others->exists($reader));
        $store->delete(\unserialize(\serialize($key)));
        $others->delete($reader);
        $this->assertNothingIsLeft();
    }

    public function testAReaderDoesNotBecomeAWriter(): void
    {
        $store = $this->store();
        $store->saveRead($key = new Key('promoted'));
        $words = '"promoted" is held by this key for reading, which does not become writing: release it';
        $this->assertConflict(static fn () => $store->save($key), $words);
        $this->assertConflict(static fn () => $store->waitAndSave($key), $words);
        $this->assertConflict(fn () => $this->store()->save(\unserialize(\serialize($key))), $words);
        $this->assertTrue($store->exists($key));
        $this->assertType('zset', 'promoted');
        $store->delete($key);
        $store->save($key);
        $this->assertType('string', 'promoted');
    }

    public function testAReaderWhoseLeaseHasEndedMayWrite(): void
    {
        $store = $this->store();
        $store->saveRead($key = new Key('ended'));
        $store->putOffExpiration($key, 0.4);
        Wait::until(static fn (): bool => !$store->exists($key), 'the lease to end');
        $key->resetLifetime();
        $store->save($key);
        $this->assertType('string', 'ended');
    }

    public function testASerialisedReaderGoesOnElsewhere(): void
    {
        $store = $this->store();
        $store->saveRead($key = new Key('elsewhere'));
        $this->assertTrue($store->exists($key)); /* its client reads what the slower nodes have answered meanwhile */
        self::assertLeftMs(1, 60_000, 'elsewhere', 5); /* else the other reader's key is all that a slow node has */
        $this->store(70.0, clientName: 'longer')->saveRead(new Key('elsewhere'));
        $continued = \unserialize(\serialize($key));
        $worker = $this->store(60.0, clientName: 'worker');
        $this->assertTrue($worker->exists($continued));
        $worker->putOffExpiration($continued, 80.0);
        self::assertLeftMs(70_000, 80_000, 'elsewhere');
        $this->assertTrue($worker->exists($continued));
        $worker->delete($continued);
        $this->assertFalse($worker->exists($continued));
        $this->expectException(LockConflictedException::class);
        $store->putOffExpiration($key, 5.0);
    }

    /** As a client of all programs may have the option shared. */
    public function testAStoreWritesUnlessItIsAskedToRead(): void
    {
        $store = $this->store(60.0, shared: true);
        $store->save($key = new Key('written'));
        $this->assertType('string', 'written');
        $store->delete($key);
    }
}
