<?php

declare(strict_types=1);

namespace Redlock\Tests;

use Redlock\Exception\BusyException;
use Redlock\Exception\InvalidOptionException;
use Redlock\Exception\LostException;
use Redlock\Exception\NoQuorumException;
use Redlock\Exception\NotHeldException;
use Redlock\Hold;
use Redlock\OpenTelemetry\Metrics;
use Redlock\OpenTelemetry\TracedClient;
use Redlock\Testing\MemoryClient;
use Redlock\Tests\Telemetry\Backend;

/** Spans and metrics, as OpenTelemetry gets them. */
final class OpenTelemetryTest extends NodesTestCase
{
    private const CLIENT = 1; /* kind of spans */
    private const OK = ['Unset', null];

    private Backend $backend;

    protected function setUp(): void
    {
        parent::setUp();
        $this->backend = Backend::make();
    }

    private function traced(string $name = '', mixed ...$options): TracedClient
    {
        return new TracedClient($this->client(...$options), $this->backend->tracers, $name);
    }

    public function testABodyHasSpansForEachCallAndItsHold(): void
    {
        $client = $this->traced();
        $lock = $client->lock('orders:42', ttlMs: 20000, fence: true);
        $fence = $this->backend->in('request', fn (): ?int => $lock->run(
            fn (Hold $lock): ?int => $this->backend->in('work', static function () use ($lock): ?int {
                $lock->extend(21000);
                return $lock->fence();
            }),
            5000,
        ));
        $this->assertGreaterThan(0, $fence);
        $this->assertSame(['request', 'acquire', 'hold', 'work', 'extend', 'release'], $this->backend->names());
        $this->assertSame([null, 'request', 'request', 'redlock.hold', 'work', 'request'],
            \array_column($this->backend->spans(), 'parent'));
        $resource = ['resource' => 'orders:42'];
        $this->assertEquals($resource + ['ttl_ms' => 20000, 'wait_ms' => 5000, 'status' => 'OK', 'attempts' => 1,
            'fence' => $fence], $this->backend->attributes('acquire'));
        $this->assertEquals($resource + ['ttl_ms' => 20000, 'fence' => $fence], $this->backend->attributes('hold'));
        $extended = $this->backend->attributes('extend');
        $this->assertGreaterThan(0, $extended['remaining_ms']);
        unset($extended['remaining_ms']);
        $this->assertEquals($resource + ['ttl_ms' => 21000, 'status' => 'OK'], $extended);
        $this->assertEquals($resource + ['status' => 'OK'], $this->backend->attributes('release'));
        foreach (['acquire', 'extend', 'release'] as $name) {
            $this->assertSame([self::CLIENT, ...self::OK], $this->statusOf($name));
        }
        $this->assertLessThanOrEqual($this->backend->one('release')['start'], $this->backend->one('hold')['end']);
    }

    /** @return list<mixed> */
    private function statusOf(string $name): array
    {
        $span = $this->backend->one($name);
        return [$span['kind'], $span['status'], $span['description'] ?: null];
    }

    public function testPlainCallsHaveSpansWithoutAHold(): void
    {
        $lock = $this->traced('orders')->lock("r\xff")->with(ttlMs: 12000);
        $lock->acquire(-1);
        $lock->expire(10000);
        $lock->release();
        $this->assertSame(['acquire', 'expire', 'release'], $this->backend->names());
        $this->assertEquals(['resource' => 'r\377', 'client' => 'orders', 'ttl_ms' => 12000, 'status' => 'OK',
            'attempts' => 1], $this->backend->attributes('acquire'));
        $this->assertSame("r\xff", $lock->resource());
    }

    public function testSpansNameEachResource(): void
    {
        $lock = $this->traced()->lock(['orders', "r\xff"]);
        $lock->run(static fn (): null => null);
        foreach (['acquire', 'hold', 'release'] as $name) {
            $this->assertSame('orders, r\377', $this->backend->attributes($name)['resource']);
        }
    }

    public function testABodyThatReleasesEarlyHasASpanThatEnds(): void
    {
        $lock = $this->traced()->lock('tree', reentrant: true);
        $early = static fn (Hold $hold) => $hold->release();
        $lock->run($early);
        $lock->run(function () use ($lock, $early): void {
            try {
                $lock->run($early);
            } catch (NotHeldException) {
            }
        });
        $nested = ['acquire', 'hold', 'acquire', 'hold', 'release', 'release'];
        $this->assertSame(['acquire', 'hold', 'release', ...$nested], $this->backend->names());
    }

    public function testBusyIsNoErrorAndNoQuorumIsOne(): void
    {
        $theirs = $this->client()->lock('r');
        $theirs->acquire();
        $client = $this->traced();
        $this->assertFalse($client->lock('r')->tryAcquire());
        foreach (['acquire', 'run'] as $method) {
            try {
                $method === 'run' ? $client->lock('r')->run(static fn (): int => 1, 0) : $client->lock('r')->acquire(0);
                $this->fail('two holders');
            } catch (BusyException) {
            }
        }
        foreach ($this->backend->spans() as $span) {
            $this->assertSame(['Unset', 'BUSY', 0, 1], [$span['status'], $span['attributes']['redlock.status'],
                $span['attributes']['redlock.wait_ms'], $span['attributes']['redlock.attempts']]);
        }
        $this->assertSame(['acquire', 'acquire', 'acquire'], $this->backend->names());
        foreach (self::cluster()->nodes as $node) {
            $node->kill();
        }
        try {
            $client->lock('s', outageWaitMs: 0)->acquire();
            $this->fail('a lock without nodes');
        } catch (NoQuorumException) {
        }
        $outage = $this->backend->spans()[3];
        $this->assertSame(['Error', 'NO_QUORUM'], [$outage['status'], $outage['attributes']['redlock.status']]);
        $this->assertStringContainsString('0 of 5 nodes', $outage['description']);
        $this->assertSame('exception', $outage['events'][0][0]);
    }

    public function testALossIsRecordedInHoldAndRelease(): void
    {
        $lock = $this->traced()->lock('r', ...LockTest::SHORT, renew: false);
        try {
            $lock->run(static function (Hold $lock): void {
                Wait::until(static fn (): bool => $lock->isLost(), 'the lease to end');
            });
            $this->fail('the loss is not told');
        } catch (LostException) {
        }
        $this->assertLost('expired');
        $this->assertSame('LOST', $this->backend->attributes('release')['status']);
        $this->assertSame('expired', $this->backend->attributes('release')['loss']);
        $this->assertSame('Error', $this->backend->one('release')['status']);
    }

    private function assertLost(?string $reason): void
    {
        $hold = $this->backend->one('hold');
        $this->assertSame(['Error', $reason], [$hold['status'], $hold['attributes']['redlock.loss'] ?? null]);
        $losses = \array_values(\array_filter($hold['events'],
            static fn (array $event): bool => $event[0] === 'redlock.lost'));
        $this->assertCount(1, $losses);
        $this->assertNotSame('', $losses[0][1]['message']);
    }

    public function testAnErrorOfTheBodyIsRecordedInItsHold(): void
    {
        $client = $this->traced();
        foreach ([false, true] as $isLost) {
            $lock = $client->lock('r', ...($isLost ? LockTest::SHORT + ['renew' => false] : []));
            try {
                $lock->run(static function (Hold $lock) use ($isLost): void {
                    $isLost && Wait::until(static fn (): bool => $lock->isLost(), 'the lease to end');
                    throw new \DomainException('mine');
                });
                $this->fail('the error of the body is gone');
            } catch (\DomainException) {
            }
            $spans = \array_slice($this->backend->spans(), $isLost ? 3 : 0);
            $this->assertSame(['redlock.acquire', 'redlock.hold', 'redlock.release'], \array_column($spans, 'name'));
            $events = \array_column($spans[1]['events'], 0);
            $this->assertSame($isLost ? ['exception', 'redlock.lost'] : ['exception'], $events);
            $this->assertSame(['Error', $isLost ? 'Error' : 'Unset'], [$spans[1]['status'], $spans[2]['status']]);
        }
        $this->assertSame(1, $this->backend->in('after', static fn (): int => 1));
        $this->assertNull($this->backend->spans()[6]['parent']);
        $this->assertNothingIsLeft();
    }

    public function testABodyThatReleasesHasOneRelease(): void
    {
        $this->traced()->lock('r')->run(static fn (Hold $lock) => $lock->release());
        $this->assertSame(['acquire', 'hold', 'release'], $this->backend->names());
        $this->assertNothingIsLeft();
    }

    public function testEverythingElseIsTheOtherClients(): void
    {
        $client = $this->traced(waitMs: 7000);
        $this->assertSame('7000', $client->option('wait_ms'));
        $this->assertSame(5, $client->check()['voting']);
        $this->assertTrue($client->status('r')->isFree());
        $lock = $client->lock('r');
        $lock->acquire();
        $this->assertSame(5, \count($lock->votes()));
        $this->assertTrue($lock->isHeld() && !$lock->isLost() && $lock->remainingMs() > 0);
        $adopted = $client->adopt('r', $lock->detach(), 15000, maxHoldMs: 60000);
        $adopted->extend();
        $adopted->release();
        $this->assertSame(['acquire', 'extend', 'release'], $this->backend->names());
        $this->assertSame([7000, 15000], [$this->backend->attributes('acquire')['wait_ms'],
            $this->backend->attributes('extend')['ttl_ms']]);
        $this->expectException(InvalidOptionException::class);
        $this->expectExceptionMessage('ttlMs');
        $client->lock('r', ttlMs: 0);
    }

    public function testAPermitHasItsSlot(): void
    {
        $permit = $this->traced()->lock('gpu', permits: 2, slot: 1);
        $this->assertSame(1, $permit->run(static fn (Hold $held): ?int => $held->slot()));
    }

    public function testLocksInMemoryHaveSpans(): void
    {
        $client = new TracedClient(new MemoryClient(), $this->backend->tracers);
        $this->assertSame(1, $client->lock('r')->run(static fn (): int => 1));
        $this->assertSame(['acquire', 'hold', 'release'], $this->backend->names());
    }

    public function testATracerThatFailsCostsNeitherTheLockNorTheRelease(): void
    {
        $file = \tempnam(\sys_get_temp_dir(), 'redlock');
        $before = \ini_set('error_log', $file);
        $this->backend->breakTracer();
        try {
            $this->assertSame(1, $this->traced()->lock('r')->run(function (Hold $lock): int {
                $this->assertTrue($lock->isHeld());
                return 1;
            }));
        } finally {
            \ini_set('error_log', (string) $before);
            $written = \file_get_contents($file);
            \unlink($file);
        }
        $this->assertStringContainsString('no spans today', $written);
        $this->assertNothingIsLeft();
    }

    public function testTheFiguresAreThoseOfTheClient(): void
    {
        $client = $this->client();
        $client->check();
        $metrics = new Metrics($client, $this->backend->meters, 'orders');
        for ($i = 0; $i < 3; $i++) {
            $client->lock('r')->run(static fn (): int => 1);
        }
        $told = $client->describe();
        $values = $this->backend->metrics();
        $value = static function (string $name, array $attributes = []) use ($values): float|int|null {
            foreach ($values[$name] ?? [] as [$given, $amount]) {
                if ($given == $attributes + ['redlock.client' => 'orders']) {
                    return $amount;
                }
            }
            return null;
        };
        $this->assertEquals(3, $value('redlock.acquisitions', ['status' => 'OK']));
        $this->assertEquals(0, $value('redlock.losses', ['reason' => 'gone']));
        $this->assertEquals(0, $value('redlock.locks_held'));
        $this->assertEquals([3, 3], [$value('redlock.wait.count'), $value('redlock.hold.bucket', ['le' => '+Inf'])]);
        $this->assertEqualsWithDelta($told['wait_us']['sum'] / 1e6, $value('redlock.wait.sum'), 1e-6);
        foreach ($told['nodes'] as $node) {
            $this->assertEquals(1, $value('redlock.node.votes_now', ['node' => $node['node']]));
            $this->assertGreaterThan(0, $value('redlock.node.rtt', ['node' => $node['node']]));
        }
        unset($metrics);
        \gc_collect_cycles();
        $this->assertSame([], $this->backend->metrics());
    }
}
