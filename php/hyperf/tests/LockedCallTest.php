<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests;

use Redlock\Exception\BusyException;
use Redlock\Exception\InvalidOptionException;
use Redlock\Hyperf\LockedCall;
use Redlock\Hyperf\Locks;
use Redlock\Hyperf\LockSpec;
use Redlock\Tests\NodesTestCase;

/** What the aspect does, without the framework. */
final class LockedCallTest extends NodesTestCase
{
    private Locks $locks;

    protected function setUp(): void
    {
        parent::setUp();
        $this->locks = new Locks(
            ['default' => ['nodes' => \explode(',', self::cluster()->urls())] + $this->config()], []);
    }

    private function call(array $specs, \Closure $body, array $arguments = ['id' => 7], ?object $instance = null): mixed
    {
        return (new LockedCall($this->locks, 'Orders::pay', $arguments, \array_values($arguments), $instance,
            $body))->run($specs);
    }

    private function held(): array
    {
        $held = \array_keys(\array_filter(self::cluster()->keys(), static fn (int $nodes): bool => $nodes >= 3));
        \sort($held);
        return $held;
    }

    public function testTheBodyRunsUnderTheLocksInOrder(): void
    {
        $seen = $this->call([new LockSpec('order:#{id}'), new LockSpec('stock')], fn (): array => $this->held());
        $this->assertSame(['order:7', 'stock'], $seen);
        $this->assertNothingIsLeft();
    }

    public function testTheLocksGoWhenTheBodyFails(): void
    {
        try {
            $this->call([new LockSpec('order:#{id}')], static fn () => throw new \DomainException('mine'));
            $this->fail('the error is gone');
        } catch (\DomainException) {
        }
        $this->assertNothingIsLeft();
    }

    public function testAResourceHeldFurtherOutPassesThrough(): void
    {
        $spec = [new LockSpec('order:#{id}')];
        $seen = $this->call($spec, function () use ($spec): array {
            $this->call($spec, static fn () => null);
            return $this->held();
        });
        $this->assertSame(['order:7'], $seen);
        $this->assertNothingIsLeft();
    }

    public function testBusyCallsOnBusyWithTheSameArguments(): void
    {
        $holder = $this->locks->lock('order:7');
        $holder->acquire();
        $instance = new class {
            public function later(int $id): string
            {
                return "later $id";
            }
        };
        $spec = new LockSpec('order:#{id}', ['wait_ms' => 0], onBusy: 'later');
        $this->assertSame('later 7', $this->call([$spec], static fn () => 'now', instance: $instance));
        $this->expectException(BusyException::class);
        $this->call([new LockSpec('order:#{id}', ['wait_ms' => 0])], static fn () => 'now');
    }

    public function testOnBusyIsNotForErrorsOfTheBody(): void
    {
        $spec = new LockSpec('order:#{id}', onBusy: 'later');
        $this->expectException(BusyException::class);
        $this->expectExceptionMessage('of the body');
        $this->call([$spec], static fn () => throw new BusyException('of the body'), instance: new \stdClass());
    }

    public function testATtlTooLongForOneLeaseIsRenewed(): void
    {
        $client = $this->locks->client();
        $options = (new LockSpec('x', ['ttl_ms' => 60000, 'wait_ms' => null]))->optionsFor($client);
        $this->assertSame(['ttl_ms' => 30000, 'renew' => true, 'max_hold_ms' => 60000, 'max_extensions' => -1],
            $options);
        $this->assertSame('x',
            $this->call([new LockSpec('x', ['ttl_ms' => 60000])], fn (): string => $this->held()[0]));
    }

    public function testAnOptionIsRefusedByTheNameInTheAttribute(): void
    {
        $this->expectException(InvalidOptionException::class);
        $this->expectExceptionMessage('driftFactor is "0.5"; allowed: 0 to 0.1');
        $this->call([new LockSpec('x', ['drift_factor' => 0.5])], static fn () => null);
    }

    public function testAnUnknownClusterIsNamed(): void
    {
        $this->expectException(InvalidOptionException::class);
        $this->expectExceptionMessage('there is no cluster "other" in config/autoload/redlock.php; there are: default');
        $this->call([new LockSpec('x', cluster: 'other')], static fn () => null);
    }

    public function testLeavingWaitsForTheBodyAndNeverReleasesUnderIt(): void
    {
        $seen = $this->call([new LockSpec('order:#{id}')], function (): array {
            $this->locks->leave();
            return $this->held();
        });
        $this->assertSame(['order:7'], $seen);
        $this->assertNothingIsLeft();
        $this->assertConnections(0);
    }

    public function testTheEndOfTheWorkerLeavesAHeldLockToItsTtl(): void
    {
        $seen = $this->call([new LockSpec('order:#{id}')], function (): array {
            $this->locks->close();
            return $this->held();
        });
        $this->assertSame(['order:7'], $seen);
        $this->assertSame(['order:7'], $this->held());
    }
}
