<?php

declare(strict_types=1);

namespace Redlock\Tests;

use Redlock\Client;
use Redlock\Exception\InvalidOptionException;
use Redlock\Exception\LostException;
use Redlock\Lock;
use Redlock\Native;

final class ClientTest extends NodesTestCase
{
    public function testDrainReleasesWhatIsHeld(): void
    {
        $client = $this->client();
        $lock = $client->lock('drained');
        $lock->acquire();
        $this->assertTrue($client->drain(30000));
        $this->assertArrayNotHasKey('drained', self::cluster()->keys()); /* a node may lag with the test before */
        $this->client()->lock('drained')->acquire(0);
        foreach ([fn () => $lock->acquire(0), fn () => $client->lock('drained'), $client->check(...)] as $call) {
            try {
                $call();
                $this->fail('it works on');
            } catch (InvalidOptionException $refused) {
                $this->assertSame('the client has been closed', $refused->getMessage());
            }
        }
    }

    public function testEveryActOnWhatADrainReleasedSaysThatItIsLost(): void
    {
        $client = $this->client(clientName: 'leaves');
        $hold = $client->lock('drained')->acquire();
        $client->drain();
        $acts = [$hold->check(...), $hold->extend(...), $hold->expire(...), $hold->downgrade(...), $hold->detach(...),
            $hold->release(...), $hold->extend(...), $hold->release(...)];
        foreach ($acts as $number => $act) {
            try {
                $act();
                $this->fail("act $number was not refused");
            } catch (LostException $lost) {
                $this->assertSame(['drained', 'closed'], [$lost->resource, $lost->reason]);
            }
        }
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

    public function testAFailureAfterTheBodyCarriesItsResult(): void
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
        \array_map(static fn (Lock $lock) => $lock->tryAcquire(30000), $locks);
        for ($i = 0; $i < 5000; $i++) {
            $this->assertNotSame([], $client->describe()); /* throws if the text was cut off */
        }
    }

    public function testMetricsCountAcquisitionsAndHolds(): void
    {
        $client = $this->client();
        $client->lock('r')->run(static fn () => null);
        $figures = $client->metrics();
        $this->assertStringContainsString('redlock_acquisitions_total{status="OK"} 1' . "\n", $figures);
        $this->assertStringContainsString('redlock_hold_seconds_count 1' . "\n", $figures);
        $this->assertStringEndsWith("# EOF\n", $figures);
    }

    public function testClientLockAndElectionAreNotClonedNorSerialised(): void
    {
        $client = $this->client();
        foreach ([$client, $client->lock('x'), $client->election('x')] as $object) {
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
