<?php

declare(strict_types=1);

namespace Redlock\Tests;

use Redlock\Exception\BusyException;
use Redlock\Exception\InvalidOptionException;
use Redlock\Exception\LostException;
use Redlock\Exception\RedlockThrowable;
use Redlock\Exception\TimedOutException;
use Redlock\Hold;

final class LockTest extends NodesTestCase
{
    /** A lease that a test can wait for. */
    public const SHORT = ['ttlMs' => 400, 'nodeTimeoutMs' => 100];

    public function testASecondHolderIsRefusedWithEveryNodesAnswer(): void
    {
        $client = $this->client();
        $first = $client->lock('orders:42');
        $first->acquire();
        $second = $client->lock('orders:42');
        $this->assertFalse($second->tryAcquire());
        try {
            $second->acquire(waitMs: 0);
            $this->fail('two holders');
        } catch (BusyException $busy) {
            $this->assertSame(\REDLOCK_BUSY, $busy->status);
            $this->assertSame(\REDLOCK_BUSY, $busy->getCode());
            $this->assertSame('orders:42', $busy->resource);
            $this->assertCount(5, $busy->votes);
            $this->assertStringContainsString('orders:42', $busy->getMessage());
            $this->assertInstanceOf(RedlockThrowable::class, $busy);
        }
        $first->release();
        $this->assertNotFalse($second->tryAcquire());
    }

    public function testTryAcquireMayWait(): void
    {
        $client = $this->client(waitMs: 700);
        $holder = $client->lock('waited');
        $holder->acquire();
        foreach ([[0, 0.0], [300, 0.3e9], [null, 0.7e9]] as [$waitMs, $leastNs]) {
            do { /* again if no node was in time */
                $begun = \hrtime(true);
                try {
                    $isTaken = $client->lock('waited')->tryAcquire($waitMs) !== false;
                } catch (TimedOutException) {
                    $isTaken = null;
                }
            } while ($isTaken === null);
            $this->assertFalse($isTaken);
            $this->assertGreaterThanOrEqual($leastNs, \hrtime(true) - $begun);
        }
        $holder->release();
        $short = $client->lock('waited', ...self::SHORT);
        $short->acquire(30000);
        $second = $client->lock('waited');
        $this->assertNotFalse($second->tryAcquire(-1), 'once the lease has ended');
        $this->assertTrue($second->isHeld());
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('tryAcquire(): Argument #1 ($waitMs) must be null, -1 (no limit) or at least 0');
        $second->tryAcquire(-2);
    }

    public function testAnAdoptedLockMayHaveOptions(): void
    {
        $client = $this->client();
        $first = $client->lock('taken over', fence: true);
        $first->acquire();
        $adopted = $client->adopt('taken over', $first->detach(), ttlMs: 9000, renew: true, maxHoldMs: -1);
        $adopted->extend();
        $this->assertTrue($adopted->isRenewed());
        $this->assertLessThanOrEqual(9000, $adopted->remainingMs());
        $adopted->release();
        $this->expectException(InvalidOptionException::class);
        $this->expectExceptionMessage('there is no option "ttl"');
        $client->adopt('taken over', $adopted->token(), ttl: 5);
    }

    public function testRunReturnsTheResultAndReleases(): void
    {
        $client = $this->client();
        $result = $client->lock('job')->run(function (Hold $lock): string {
            $this->assertTrue($lock->isHeld());
            $this->assertTrue($lock->isRenewed());
            return 'done';
        });
        $this->assertSame('done', $result);
        $this->assertNothingIsLeft();
    }

    public function testRunWithTheLockLostCarriesTheResult(): void
    {
        $lock = $this->client()->lock('lost', ...self::SHORT, renew: false);
        try {
            $lock->run(static function (Hold $lock): int {
                Wait::until(static fn (): bool => $lock->isLost(), 'the lease to end');
                return 42;
            });
            $this->fail('the loss was not told');
        } catch (LostException $lost) {
            $this->assertSame([42, 'expired'], [$lost->result, $lost->reason]);
        }
    }

    /** Nothing of it would run under the lock. */
    public function testAGeneratorAsBodyIsRefused(): void
    {
        $client = $this->client();
        $ran = false;
        $body = static function () use (&$ran): \Generator {
            $ran = true;
            yield 1;
        };
        foreach ([$body, static fn (): \Generator => $body()] as $refused) {
            try {
                $client->lock('generator')->run($refused);
                $this->fail('a generator without its lock');
            } catch (InvalidOptionException $e) {
                $this->assertStringContainsString('run after the release', $e->getMessage());
                $this->assertInstanceOf(\Generator::class, $e->result);
            }
        }
        $this->assertFalse($ran);
        $this->assertNothingIsLeft();
    }

    public function testDumpsAreShort(): void
    {
        $lock = $this->client()->lock('dumped');
        $dump = \print_r($lock->acquire(), true);
        $this->assertMatchesRegularExpression('/Hold Object\n\(\n    \[resource\] => dumped\n    \[state\] => held\n/',
            $dump);
        $this->assertLessThan(12, \substr_count($dump, "\n"));
        $this->assertStringContainsString('[holds] => held', \print_r($lock, true));
        $dump = \print_r($this->client(), true);
        $this->assertMatchesRegularExpression('/\[127\.0\.0\.1:\d+\] => ready/', $dump);
        $this->assertLessThan(16, \substr_count($dump, "\n"));
    }

    public function testALossSaysItsReason(): void
    {
        $lock = $this->client()->lock('gone');
        $lock->acquire();
        foreach (self::cluster()->nodes as $node) {
            $node->command('DEL', 'gone');
        }
        try {
            $lock->extend();
            $this->fail('the loss was not told');
        } catch (LostException $lost) {
            $this->assertSame('gone', $lost->reason);
        }
    }

    public function testADrainUnderABodyIsALoss(): void
    {
        $client = $this->client();
        try {
            $client->lock('drained')->run(static function () use ($client): int {
                $client->drain();
                return 42;
            });
            $this->fail('the loss was not told');
        } catch (LostException $lost) {
            $this->assertSame(['drained', 42, 'closed'], [$lost->resource, $lost->result, $lost->reason]);
        }
    }

    public function testTheErrorOfABodyLeavesEvenIfTheLockIsLost(): void
    {
        $log = new MemoryLogger();
        $lock = $this->client(logger: $log)->lock('lost', ...self::SHORT, renew: false);
        try {
            $lock->run(static function (Hold $lock): never {
                Wait::until(static fn (): bool => $lock->isLost(), 'the lease to end');
                throw new \DomainException('mine');
            });
        } catch (\DomainException) {
            $this->assertNotSame([], \array_filter($log->records, static fn (array $r): bool => $r[0] === 'warning'));
            return;
        }
        $this->fail('the error of the body is gone');
    }

    public function testABodyMayReleaseOrDetachItself(): void
    {
        $client = $this->client();
        $client->lock('early')->run(static fn (Hold $lock) => $lock->release());
        $token = $client->lock('handed')->run(static fn (Hold $lock): string => $lock->detach());
        Wait::until(static fn (): bool => \array_keys(self::cluster()->keys()) === ['handed'], 'the other key to go');
        $client->adopt('handed', $token)->release();
        $this->assertNothingIsLeft();
    }

    public function testAForgottenLockIsReleased(): void
    {
        $lock = $this->client()->lock('forgotten');
        $lock->acquire();
        unset($lock);
        $this->assertNothingIsLeft();
    }

    public function testManyCyclesDoNotGrow(): void
    {
        $lock = $this->client()->lock('cycle');
        $cycle = static function () use ($lock): void {
            $lock->acquire(0);
            $lock->release();
        };
        for ($i = 0; $i < 200; $i++) {
            $cycle();
        }
        $before = \memory_get_usage();
        /* what nodes that lag behind are owed takes room up to a mark; a leak goes on */
        for ($round = 0, $growthKb = \PHP_INT_MAX; $round < 8 && $growthKb >= 1024; $round++) {
            $beforeKb = self::residentKb();
            for ($i = 0; $i < 5000; $i++) {
                $cycle();
            }
            $growthKb = self::residentKb() - $beforeKb;
        }
        $this->assertLessThan(10_000, \memory_get_usage() - $before);
        $this->assertLessThan(1024, $growthKb);
    }
}
