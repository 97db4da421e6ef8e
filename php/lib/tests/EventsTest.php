<?php

declare(strict_types=1);

namespace Redlock\Tests;

use Psr\Log\AbstractLogger;
use Redlock\Client;
use Redlock\Event\Acquired;
use Redlock\Event\Extended;
use Redlock\Event\Lost;
use Redlock\Event\NodeDown;
use Redlock\Event\NodeUp;
use Redlock\Event\NotAcquired;
use Redlock\Event\Released;
use Redlock\Exception\LostException;
use Redlock\Exception\NoQuorumException;
use Redlock\Hold;

/** The events that a PSR-14 dispatcher gets. */
final class EventsTest extends NodesTestCase
{
    public function testTheLifeOfALockIsTold(): void
    {
        $client = $this->client(dispatcher: $heard = new Dispatcher());
        $lock = $client->lock('orders:42', fence: true)->acquire();
        $lock->extend();
        $lock->release();
        $this->assertSame(['Acquired', 'Extended', 'Released'], $heard->names());
        [$acquired, $extended, $released] = [$heard->of(Acquired::class)[0], $heard->of(Extended::class)[0],
            $heard->of(Released::class)[0]];
        $this->assertSame(['orders:42', $lock->token(), 1, $lock->fence()],
            [$acquired->resource, $acquired->token, $acquired->attempts, $acquired->fence]);
        $this->assertGreaterThan(0, $acquired->fence);
        foreach ([$acquired->remainingMs, $extended->remainingMs] as $remainingMs) {
            $this->assertGreaterThan(0, $remainingMs);
            $this->assertLessThanOrEqual(30000, $remainingMs);
        }
        $this->assertGreaterThanOrEqual(0, $acquired->waitedMs);
        $this->assertIsInt($released->heldMs);
        $this->assertGreaterThanOrEqual(0, $released->heldMs);
        $this->assertLessThan(30000, $released->heldMs);
    }

    public function testALockThatIsTakenAgainIsAcquiredAndReleasedOnce(): void
    {
        $client = $this->client(dispatcher: $heard = new Dispatcher());
        $lock = $client->lock('tree', reentrant: true);
        $lock->run(static fn (): mixed => $lock->run(static fn (): Hold|false => $lock->tryAcquire()));
        $this->assertSame(['Acquired'], $heard->names(), 'one section has not ended');
        $lock->release();
        $this->assertSame(['Acquired', 'Released'], $heard->names());
        $this->assertIsInt($heard->of(Released::class)[0]->heldMs);
    }

    public function testABodyThatFailsIsToldAsReleasedToo(): void
    {
        $client = $this->client(dispatcher: $heard = new Dispatcher());
        $this->assertSame(1, $client->lock('r')->run(static fn (): int => 1));
        try {
            $client->lock('r')->run(static fn (): int => throw new \DomainException('mine'));
            $this->fail('the error of the body is gone');
        } catch (\DomainException) {
        }
        $this->assertSame(['Acquired', 'Released', 'Acquired', 'Released'], $heard->names());
    }

    public function testALoggerMayTakeALockForEachEvent(): void
    {
        $logger = new class () extends AbstractLogger {
            public Client $client;
            public int $lines = 0;

            public function log($level, $message, array $context = []): void
            {
                $this->lines += $this->client->lock('the log', waitMs: 1000)->run(static fn (): int => 1);
            }
        };
        $logger->client = $this->client(logger: $logger);
        [$one, $other] = self::cluster()->nodes;
        $one->kill();
        $other->kill();
        $voting = fn (): int => $this->client()->check()['voting']; /* on the same connections, without a logger */
        Wait::until(static fn (): bool => $voting() === 3, 'two nodes to be down');
        $logger->client->logEvents();
        $this->assertGreaterThanOrEqual(2, $logger->lines);
    }

    public function testALockThatIsNotToBeHadIsToldWithItsStatus(): void
    {
        $theirs = $this->client()->lock('r');
        $theirs->acquire();
        $client = $this->client(dispatcher: $heard = new Dispatcher());
        $this->assertFalse($client->lock('r')->tryAcquire());
        foreach (self::cluster()->nodes as $node) {
            $node->kill();
        }
        try {
            $client->lock('s', outageWaitMs: 0)->acquire();
            $this->fail('a lock without nodes');
        } catch (NoQuorumException) {
        }
        $this->assertSame(['NotAcquired', 'NotAcquired'], $heard->names());
        [$busy, $outage] = $heard->of(NotAcquired::class);
        $this->assertSame(['r', 'BUSY', 1], [$busy->resource, $busy->status, $busy->attempts]);
        $this->assertSame(['s', 'NO_QUORUM'], [$outage->resource, $outage->status]);
        $this->assertStringContainsString('0 of 5 nodes', $outage->message);
    }

    public function testALossIsToldWithItsReason(): void
    {
        $client = $this->client(dispatcher: $heard = new Dispatcher());
        $lock = $client->lock('r', ...LockTest::SHORT, renew: false);
        try {
            $lock->run(static function (Hold $lock): void {
                Wait::until(static fn (): bool => $lock->isLost(), 'the lease to end');
            });
            $this->fail('the loss is not told');
        } catch (LostException) {
        }
        $this->assertSame(['Acquired', 'Lost'], $heard->names());
        [$lost] = $heard->of(Lost::class);
        $this->assertSame(['r', 'expired'], [$lost->resource, $lost->reason]);
        $this->assertStringContainsString('expired', $lost->detail);
        $this->assertEqualsWithDelta(\microtime(true) * 1000, $lost->atMs, 60000);
    }

    public function testALossUnderAFailingBodyIsLoggedOnce(): void
    {
        $client = $this->client(logger: $log = new MemoryLogger());
        try {
            $client->lock('r')->run(function (Hold $hold) use ($client): void {
                $client->remove('r');
                $hold->extend();
            });
            $this->fail('extended what was removed');
        } catch (LostException) {
            $words = \array_map(static fn (array $record): string => $record[2]['detail'] ?? $record[2]['message'],
                $log->records);
            $this->assertCount(1, \preg_grep('/gone/', $words), \implode("\n", $words));
        }
    }

    public function testNodesThatComeAndGoAreTold(): void
    {
        $client = $this->client(dispatcher: $heard = new Dispatcher());
        $client->check();
        $this->assertCount(5, $heard->of(NodeUp::class));
        $node = self::cluster()->nodes[0];
        $node->kill();
        Wait::until(static function () use ($client, $heard): bool {
            $client->lock('r')->run(static fn (): int => 1);
            return $heard->of(NodeDown::class) !== [];
        }, 'the node to be missed');
        $this->assertSame("127.0.0.1:$node->port", $heard->of(NodeDown::class)[0]->node);
    }

    public function testAFailingListenerCostsNeitherTheLockNorTheRelease(): void
    {
        $heard = new Dispatcher(static fn () => throw new \LogicException('I do not listen'));
        $client = $this->client(logger: $log = new MemoryLogger(), dispatcher: $heard);
        $lock = $client->lock('r');
        $lock->acquire();
        $this->assertTrue($lock->isHeld());
        $lock->extend();
        $lock->release();
        $this->assertSame('done', $client->lock('r')->run(static fn (): string => 'done'));
        $this->assertNothingIsLeft();
        $isError = static fn (array $record): bool => $record[0] === 'error';
        $errors = \array_values(\array_filter($log->records, $isError));
        $this->assertSame(\count($heard->events), \count($errors));
        $this->assertSame('I do not listen', $errors[0][2]['message']);
        $this->assertInstanceOf(\LogicException::class, $errors[0][2]['exception']);
        $this->assertStringContainsString(NodeUp::class, \implode(' ', \array_column($errors, 1)));
    }

    /** Without a logger PHP's own log has it, and so it does if the logger fails as well. */
    public function testAFailingListenerIsNeverSilent(): void
    {
        $file = \tempnam(\sys_get_temp_dir(), 'redlock');
        $before = \ini_set('error_log', $file);
        $failing = new class extends \Psr\Log\AbstractLogger {
            public function log($level, $message, array $context = []): void
            {
                $level === 'error' && throw new \RuntimeException('the disk is full');
            }
        };
        try {
            foreach ([null, $failing] as $logger) {
                $heard = new Dispatcher(static fn () => throw new \LogicException('I do not listen'));
                $prefix = $logger === null ? 'a' : 'b';
                self::cluster()->bootstrap(keyPrefix: $prefix);
                $client = $this->client(logger: $logger, dispatcher: $heard, keyPrefix: $prefix);
                $this->assertSame(1, $client->lock('r')->run(static fn (): int => 1));
            }
        } finally {
            \ini_set('error_log', (string) $before);
            $written = \file_get_contents($file);
            \unlink($file);
        }
        $this->assertStringContainsString('a listener of ' . Acquired::class . ' failed', $written);
        $this->assertStringContainsString('I do not listen', $written);
        $this->assertStringContainsString('the disk is full', $written);
        $this->assertNothingIsLeft();
    }

    /** Events are for listeners: the same calls without one. */
    public function testFromArrayTakesADispatcherToo(): void
    {
        $client = Client::fromArray($this->config(), dispatcher: $heard = new Dispatcher());
        $client->lock('r')->run(static fn (): int => 1);
        $this->assertSame(['Acquired', 'Released'], $heard->names());
        $this->assertSame(1, $this->client()->lock('r')->run(static fn (): int => 1));
        $this->assertCount(2, $heard->names());
    }
}
