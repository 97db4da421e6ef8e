<?php

declare(strict_types=1);

namespace Redlock\Tests;

use Redlock\Client;
use Redlock\Event\NotAcquired;
use Redlock\Exception\BusyException;
use Redlock\Exception\InvalidOptionException;
use Redlock\Exception\LostException;
use Redlock\Exception\RedlockThrowable;
use Redlock\Lock;
use Redlock\Native;
use Redlock\Verdict;

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
        $this->assertTrue($second->tryAcquire());
    }

    public function testReadersShareALockAndAWriterHasItAlone(): void
    {
        $client = $this->client();
        $readers = [$client->lock('report', shared: true), $client->lockFromArray('report', ['shared' => true])];
        foreach ($readers as $reader) {
            $reader->acquire();
        }
        $status = $client->status('report');
        $this->assertSame(Verdict::Shared, $status->verdict);
        $this->assertTrue($status->isHeld());
        $this->assertSame(2, $status->heldBy['readers']);
        $this->assertFalse($client->lock('report')->tryAcquire());
        foreach ($readers as $reader) {
            $reader->release();
        }
        $writer = $client->lock('report');
        $writer->acquire();
        $this->assertFalse($readers[0]->tryAcquire());
        $writer->release();
    }

    public function testAWriterGoesOnAsAReader(): void
    {
        $lock = $this->client()->lock('report');
        $lock->acquire();
        $this->assertFalse($lock->isShared());
        $reader = $this->client(clientName: 'reader')->lock('report', shared: true);
        $this->assertFalse($reader->tryAcquire());
        $lock->set('shared', true);
        $lock->extend();
        $this->assertTrue($lock->isHeld() && $lock->isShared());
        $reader->acquire();
        $lock->release();
        $this->assertTrue($reader->isHeld());
        $reader->release();
        $this->assertNothingIsLeft();
    }

    public function testAsManyHoldAsThereArePermits(): void
    {
        $client = $this->client();
        $permits = [$client->lock('gpu', permits: 2), $client->lockFromArray('gpu', ['permits' => 2])];
        $this->assertNull($permits[0]->slot());
        $both = function (Lock $one, Lock $two) use ($client): array {
            $this->assertFalse($client->lock('gpu', permits: 2)->tryAcquire());
            $one->extend();
            return [$one->slot(), $two->slot()];
        };
        $slots = $permits[0]->run(
            fn (Lock $one): array => $permits[1]->run(fn (Lock $two): array => $both($one, $two)));
        \sort($slots);
        $this->assertSame([0, 1], $slots);
        $chosen = $client->lock('gpu', permits: 2, slot: 1);
        $chosen->acquire();
        $this->assertSame(1, $chosen->slot());
        $adopted = $this->client()->adopt('gpu', $chosen->detach(), permits: 2, slot: 1);
        $this->assertSame(1, $adopted->slot());
        $adopted->release();
        $this->assertNothingIsLeft();
    }

    public function testPermitsThatDoNotFitAreRefused(): void
    {
        foreach ([[['permits' => 257], 'permits is "257"; allowed: 1 to 256'],
            [['slot' => 2], 'slot is 2; allowed for permits 2: 0 to 1'],
            [['shared' => true], 'permits is 2; allowed for a lock that is shared: 1'],
            [['fence' => true], 'fence is true; allowed for permits 2: false']] as [$options, $words]) {
            try {
                $this->client()->lockFromArray('gpu', $options + ['permits' => 2])->acquire();
                $this->fail($words);
            } catch (InvalidOptionException $refused) {
                $this->assertStringContainsString($words, $refused->getMessage());
            }
        }
    }

    public function testALockOfSeveralResourcesHasAllOrNone(): void
    {
        $client = $this->client(fence: true);
        $both = $client->lock(['a', 'b']);
        $both->acquire();
        $this->assertSame($both->token(), $client->status('b')->token);
        $this->assertSame([0, 'a'], [$both->fence() ?? 0, $both->resource]);
        $this->assertFalse($client->lock(['c', 'b'])->tryAcquire());
        $this->assertTrue($client->status('c')->isFree());
        $both->release();
        foreach ([[[], '0 resources'], [['a', 'a'], 'each once'], [['a', ''], '0 bytes']] as [$resources, $words]) {
            try {
                $client->lock($resources);
                $this->fail($words);
            } catch (InvalidOptionException $refused) {
                $this->assertStringContainsString($words, $refused->getMessage());
            }
        }
        $this->expectException(\TypeError::class);
        $client->lock(['a', 7]);
    }

    public function testAReentrantLockIsReleasedAsOftenAsItWasTaken(): void
    {
        $client = $this->client();
        $lock = $client->lock('tree', reentrant: true);
        $lock->acquire();
        $this->assertTrue($lock->tryAcquire());
        $seen = $lock->run(static fn (Lock $again): array => [$again === $lock, $again->run(static fn (): int => 7)]);
        $this->assertSame([true, 7], $seen);
        try {
            $lock->run(static fn () => throw new \DomainException('mine'));
            $this->fail('the error is gone');
        } catch (\DomainException) {
        }
        try {
            $lock->detach();
            $this->fail('a section that is not over has lost its lock');
        } catch (InvalidOptionException $refused) {
            $this->assertStringContainsString('acquired 2 times', $refused->getMessage());
        }
        $lock->release();
        $this->assertTrue($lock->isHeld());
        $this->assertFalse($client->lock('tree')->tryAcquire());
        $lock->release();
        $this->assertFalse($lock->isHeld());
        $this->assertNothingIsLeft();
    }

    public function testALostReentrantLockIsNotTakenAgainInside(): void
    {
        $lock = $this->client()->lock('tree', ...self::SHORT, reentrant: true);
        $lock->acquire();
        $lock->acquire();
        Wait::until(static fn (): bool => $lock->isLost(), 'the end of the lease');
        $ran = false;
        $calls = [$lock->acquire(...), static fn () => $lock->run(static function () use (&$ran): void {
            $ran = true;
        }), $lock->release(...), $lock->acquire(...), $lock->release(...)];
        foreach ($calls as $call) {
            try {
                $call();
                $this->fail('a lost lock was taken again');
            } catch (LostException $lost) {
                $this->assertSame('expired', $lost->reason);
            }
        }
        $this->assertFalse($ran);
        $lock->acquire();
        $lock->release();
    }

    public function testTryAcquireMayWait(): void
    {
        $client = $this->client(waitMs: 700);
        $holder = $client->lock('waited');
        $holder->acquire();
        foreach ([[0, 0.0], [300, 0.3e9], [null, 0.7e9]] as [$waitMs, $leastNs]) {
            $begun = \hrtime(true);
            $this->assertFalse($client->lock('waited')->tryAcquire($waitMs));
            $this->assertGreaterThanOrEqual($leastNs, \hrtime(true) - $begun);
        }
        $holder->release();
        $short = $client->lock('waited', ...self::SHORT);
        $short->acquire();
        $second = $client->lock('waited');
        $this->assertTrue($second->tryAcquire(-1), 'once the lease has ended');
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
        $adopted->set('renew', false);
        $this->assertFalse($adopted->isRenewed());
        $adopted->release();
        $this->expectException(InvalidOptionException::class);
        $this->expectExceptionMessage('there is no option "ttl"');
        $client->adopt('taken over', $first->token(), ttl: 5);
    }

    public function testRunReturnsTheResultAndReleases(): void
    {
        $client = $this->client();
        $result = $client->lock('job')->run(function (Lock $lock): string {
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
            $lock->run(static function (Lock $lock): int {
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
        $lock->acquire();
        $this->assertMatchesRegularExpression('/Lock Object\n\(\n    \[resource\] => dumped\n    \[state\] => held\n/',
            \print_r($lock, true));
        $this->assertLessThan(12, \substr_count(\print_r($lock, true), "\n"));
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
            $this->assertSame(['drained', 42], [$lost->resource, $lost->result]);
            $this->assertStringContainsString('drained while', $lost->getMessage());
        }
    }

    public function testTheErrorOfABodyLeavesEvenIfTheLockIsLost(): void
    {
        $log = new MemoryLogger();
        $lock = $this->client(logger: $log)->lock('lost', ...self::SHORT, renew: false);
        try {
            $lock->run(static function (Lock $lock): never {
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
        $client->lock('early')->run(static fn (Lock $lock) => $lock->release());
        $token = $client->lock('handed')->run(static fn (Lock $lock): string => $lock->detach());
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

    public function testStatusAndBusyNameTheClientThatHoldsIt(): void
    {
        $holder = $this->client(clientName: 'worker-7');
        $asker = $this->client();
        $this->assertNull($asker->status('known')->heldBy);
        $lock = $holder->lock('known');
        $lock->acquire();
        $heldBy = $asker->status('known')->heldBy;
        $this->assertSame(['worker-7', \gethostname(), \getmypid()],
            [$heldBy['client_name'], $heldBy['host'], $heldBy['pid']]);
        $this->assertGreaterThanOrEqual(0, $heldBy['held_ms']);
        foreach ([0, 1500] as $waitMs) { /* a single attempt asks for it, a wait has learnt it */
            try {
                $asker->lock('known')->acquire($waitMs);
                $this->fail('acquired');
            } catch (BusyException $busy) {
                $this->assertSame(\array_diff_key($heldBy, ['held_ms' => 0]),
                    \array_diff_key($busy->heldBy, ['held_ms' => 0]), "after $waitMs ms");
            }
        }
        $this->assertStringStartsWith('held by worker-7 (pid ' . \getmypid() . ' on ', $busy->getMessage());
        try {
            $asker->lock(['free', 'known'])->acquire(0);
            $this->fail('acquired');
        } catch (BusyException $busy) {
            $this->assertSame('worker-7', $busy->heldBy['client_name'], 'who holds one of several');
        }
        $lock->release();
    }

    public function testNodesThatHangAreAskedOnceForTheHolderOfSeveral(): void
    {
        $held = $this->client()->lock('known');
        $held->acquire();
        $commands = 0;
        $hang = static function (object $event) use (&$asker, &$commands): void {
            if ($event instanceof NotAcquired) {
                \array_map(static fn (Node $node) => $node->stop(), self::cluster()->nodes);
                $commands = $asker->describe()['commands'];
            }
        };
        $asker = $this->client(dispatcher: new Dispatcher($hang));
        try {
            $asker->lock([...\array_map(static fn (int $number): string => "free:$number", \range(1, 40)), 'known'])
                ->acquire(0);
            $this->fail('acquired');
        } catch (BusyException $busy) {
            $this->assertNull($busy->heldBy);
        }
        $this->assertLessThanOrEqual(20, $asker->describe()['commands'] - $commands, 'ten for each name, 410 for all');
    }

    public function testStatusNamesTheHolder(): void
    {
        $client = $this->client();
        $this->assertTrue($client->status('asked')->isFree());
        $lock = $client->lock('asked');
        $lock->acquire();
        $status = $client->status('asked');
        $this->assertTrue($status->isHeld());
        $this->assertSame($lock->token(), $status->token);
        $this->assertTrue($status->remainingMs > 10_000 && $status->remainingMs <= 30_000, "$status->remainingMs ms");
        $tokens = \array_unique(\array_filter(\array_column($status->nodes, 'token')));
        $this->assertSame([$lock->token()], \array_values($tokens));
        $this->assertTrue($lock->isHeld());
    }

    /** @return list<array{string, Verdict, 2?: string}> the keys of five nodes: a token, . none, # a hash, ! down */
    public static function verdicts(): array
    {
        return [['aa...', Verdict::Free], ['aaabb', Verdict::Held, 'a'], ['###..', Verdict::Held, 'owner'],
            ['aabb.', Verdict::Split], ['aa!!!', Verdict::Unknown]];
    }

    /** @dataProvider verdicts */
    public function testStatusSaysFreeHeldSplitOrUnknown(string $keys, Verdict $verdict, ?string $token = null): void
    {
        foreach (\str_split($keys) as $i => $key) {
            $node = self::cluster()->nodes[$i];
            match ($key) {
                '.' => null,
                '#' => $node->command('HSET', 'asked', 'owner', '1'),
                '!' => $node->kill(),
                default => $node->command('SET', 'asked', $key),
            };
        }
        $client = $this->client(nodeTimeoutMs: 500, outageWaitMs: 500, clientName: 'keys-' . \bin2hex($keys));
        $status = $client->status('asked');
        $isHeld = $verdict === Verdict::Held;
        $this->assertSame([$verdict, $token, $isHeld ? \REDLOCK_TTL_ENDLESS : null],
            [$status->verdict, $status->token, $status->remainingMs], $status->message);
        $this->assertSame([$isHeld, $verdict === Verdict::Free], [$status->isHeld(), $status->isFree()]);
    }

    public function testALockIsRemovedByForce(): void
    {
        $client = $this->client();
        $lock = $client->lock('removed');
        $lock->acquire();
        $client->remove('removed');
        $this->assertNothingIsLeft();
        $this->assertTrue($client->lock('removed')->tryAcquire());
        $this->expectException(LostException::class);
        $lock->release();
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

    public function testDrainReleasesWhatIsHeld(): void
    {
        $client = $this->client();
        $lock = $client->lock('drained');
        $lock->acquire();
        $this->assertTrue($client->drain(30000));
        $this->assertArrayNotHasKey('drained', self::cluster()->keys()); /* a node may lag with the test before */
        $this->client()->lock('drained')->acquire(0);
        $this->expectException(InvalidOptionException::class);
        $lock->acquire(0);
    }

    public function testALoggerThatFailsLeavesNoLockBehind(): void
    {
        $logger = new class extends \Psr\Log\AbstractLogger {
            public function log($level, $message, array $context = []): void
            {
                throw new \DomainException('the disk is full');
            }
        };
        $lock = $this->client(logger: $logger)->lock('logged');
        try { /* the nodes come up, which is an event */
            $lock->acquire();
            $this->fail('nothing was logged');
        } catch (\DomainException) {
        }
        $this->assertFalse($lock->isHeld());
        $this->assertNothingIsLeft();
    }

    public function testALoggerHearsWhyALockIsWaitedForMeanwhile(): void
    {
        $logger = new class extends \Psr\Log\AbstractLogger {
            public function log($level, $message, array $context = []): void
            {
                if (\str_contains($context['detail'] ?? '', 'and do not vote for')) {
                    throw new \DomainException($context['detail']);
                }
            }
        };
        self::cluster()->makeNew();
        $lock = $this->client(logger: $logger, maxTtlMs: 600000, waitMs: 90000)->lock('first');
        $begunNs = \hrtime(true);
        try {
            $lock->acquire();
            $this->fail('no reason was given');
        } catch (\DomainException $why) {
            $this->assertStringContainsString('redlock bootstrap ends that if no lock is live', $why->getMessage());
        }
        $this->assertLessThan(60e9, \hrtime(true) - $begunNs, 'it was told at the end of the wait');
    }

    public function testWhatFailsAfterTheBodyHasItsResult(): void
    {
        $failing = new class extends \Psr\Log\AbstractLogger {
            public ?\Throwable $failure = null;

            public function log($level, $message, array $context = []): void
            {
                $this->failure === null || throw $this->failure;
            }
        };
        $client = $this->client(logger: $failing);
        try {
            $client->lock('logged')->run(static function () use ($client, $failing): int {
                $failing->failure = new \DomainException('the disk is full', 0, new \LogicException('deeper'));
                self::cluster()->nodes[0]->kill(); /* which is an event */
                self::waitUntilItIsSeen($client);
                return 42;
            });
            $this->fail('nothing was logged');
        } catch (\DomainException $e) {
            $this->assertSame($failing->failure, $e);
            $this->assertSame('deeper', $e->getPrevious()->getMessage());
            $this->assertSame(42, $e->getPrevious()->getPrevious()->result);
        }
        $this->assertNothingIsLeft();
    }

    /** What comes from the nodes is read, but not the events. */
    private static function waitUntilItIsSeen(Client $client): void
    {
        $native = (static fn (Client $client): Native\Client => $client->native)->bindTo(null, Client::class)($client);
        Wait::until(static function () use ($client, $native): bool {
            $native->process();
            return $client->describe()['nodes'][0]['state'] !== 'ready';
        }, 'the client to see that the node is down');
    }

    public function testAHungNodeIsReported(): void
    {
        $client = $this->client(logger: $logger = new MemoryLogger());
        $client->status('asked'); /* every node has been reached */
        $node = self::cluster()->nodes[0];
        $name = "127.0.0.1:$node->port";
        $events = static fn (): array => \array_map(static fn (array $record): string => $record[0] . ' '
            . $record[2]['event'], \array_filter($logger->records,
            static fn (array $record): bool => ($record[2]['node'] ?? '') === $name));
        $node->stop();
        Wait::until(static function () use ($client, $events): bool {
            $client->lock('hung')->run(static fn () => null);
            return \in_array('warning node_silent', $events(), true);
        }, 'the node to be told silent');
        $told = \array_column($client->describe()['nodes'], null, 'node')[$name];
        $this->assertSame(['silent', false], [$told['state'], $told['votes']]);
        $logger->records = [];
        $node->cont();
        Wait::until(static function () use ($client, $events): bool {
            $client->lock('hung')->run(static fn () => null);
            return \in_array('info node_up', $events(), true);
        }, 'the node to speak again');
        $this->addToAssertionCount(1);
    }

    public function testCheckExaminesTheNodes(): void
    {
        $report = $this->client()->check();
        $this->assertSame([5, 3], [$report['voting'], $report['quorum']]);
        $node = self::cluster()->nodes[0];
        $node->kill();
        $report = $this->client()->check();
        $told = \array_column($report['nodes'], null, 'node')["127.0.0.1:$node->port"];
        $this->assertSame([4, false, 'connection refused', 'start the server, or correct the address'],
            [$report['voting'], $told['votes'], $told['why'], $told['advice']]);
    }

    /** What the renewing thread counts makes the text longer. */
    public function testDescribeIsWholeWhileLocksAreRenewed(): void
    {
        $client = Client::connect(self::cluster()->urls(), ttlMs: 200, renew: true);
        $locks = \array_map(static fn (int $i): Lock => $client->lock("renewed:$i"), \range(1, 60));
        \array_map(static fn (Lock $lock) => $lock->tryAcquire(), $locks);
        for ($i = 0; $i < 5000; $i++) {
            $this->assertNotSame([], $client->describe()); /* throws if the text was cut off */
        }
    }

    public function testMetrics(): void
    {
        $client = $this->client();
        $client->lock('r')->run(static fn () => null);
        $figures = $client->metrics();
        $this->assertStringContainsString('redlock_acquisitions_total{status="OK"} 1' . "\n", $figures);
        $this->assertStringContainsString('redlock_hold_seconds_count 1' . "\n", $figures);
        $this->assertStringEndsWith("# EOF\n", $figures);
    }

    public function testClientAndLockAreNeitherClonedNorSerialised(): void
    {
        $client = $this->client();
        foreach ([$client, $client->lock('x')] as $object) {
            try {
                \serialize($object);
                $this->fail('serialised');
            } catch (\LogicException $e) {
                $this->assertStringContainsString('can not be serialised', $e->getMessage());
            }
            try {
                clone $object;
                $this->fail('cloned');
            } catch (\Error $e) {
                $this->assertStringContainsString('__clone', $e->getMessage());
            }
        }
    }

    public static function residentKb(): int
    {
        \preg_match('/VmRSS:\s+(\d+)/', \file_get_contents('/proc/self/status'), $m);
        return (int) $m[1];
    }

    public function testClientsThatDifferInDefaultsOfLocksShareTheirConnections(): void
    {
        $clients = [];
        foreach ([1000, 2000, 3000] as $waitMs) {
            $clients[] = $client = $this->client(waitMs: $waitMs, renew: $waitMs === 2000, driftFactor: $waitMs / 1e6);
            $lock = $client->lock("wait:$waitMs");
            $lock->acquire();
            $this->assertSame($waitMs === 2000, $lock->isRenewed());
            $lock->release();
        }
        $this->assertConnections(5);
        foreach ([1000, 2000, 3000] as $i => $waitMs) {
            $this->assertSame((string) $waitMs, $clients[$i]->option('wait_ms'));
            $options = $clients[$i]->describe()['options'];
            $this->assertSame([$waitMs, $waitMs === 2000, $waitMs / 1e6],
                [$options['wait_ms'], $options['renew'], $options['drift_factor']]);
        }
        $this->client(keyPrefix: 'other:')->status('x');
        $this->assertConnections(10);
    }

    public function testADefaultOfAClientCountsForItsLocksOnly(): void
    {
        $short = $this->client(ttlMs: 9000);
        $long = $this->client(ttlMs: 25000);
        foreach ([[$short, 9000], [$long, 25000], [$short, 9000]] as [$client, $ttlMs]) {
            foreach ([$client->lock('ttl'), $client->lock('ttl', waitMs: 0)] as $lock) {
                $lock->acquire();
                $this->assertGreaterThan($ttlMs - 5000, $lock->remainingMs());
                $this->assertLessThan($ttlMs, $lock->remainingMs());
                $lock->release();
            }
        }
        $adopted = $short->adopt('ttl', $this->detached($long), 12000);
        $adopted->extend();
        $this->assertGreaterThan(9000, $adopted->remainingMs());
    }

    private function detached(Client $client): string
    {
        $lock = $client->lock('ttl');
        $lock->acquire();
        return $lock->detach();
    }
}
