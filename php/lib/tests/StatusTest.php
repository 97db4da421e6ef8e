<?php

declare(strict_types=1);

namespace Redlock\Tests;

use Redlock\Event\NotAcquired;
use Redlock\Exception\BusyException;
use Redlock\Exception\LostException;
use Redlock\Exception\NoQuorumException;
use Redlock\Exception\TimedOutException;
use Redlock\Hold;
use Redlock\ListedLock;
use Redlock\Lock;
use Redlock\ResourceStatus;
use Redlock\Verdict;

final class StatusTest extends NodesTestCase
{
    public function testLocksAreListedWithTheirHoldersAndWaiters(): void
    {
        $holder = $this->client(clientName: 'lister');
        $hold = $holder->lock("orders:\xff", ttlMs: 20000)->acquire();
        $other = $holder->lock('invoices', ttlMs: 20000)->acquire();
        $found = $holder->locks('orders:*');
        $this->assertFalse($found->more);
        $this->assertCount(1, $found);
        [$one] = $found->locks;
        $this->assertSame(["orders:\xff", 'plain', Verdict::Held, $hold->token(), 0, null],
            [$one->resource, $one->kind, $one->verdict, $one->token, $one->waiting, $one->first]);
        $this->assertSame(['lister', \getmypid()], [$one->heldBy['client_name'], $one->heldBy['pid']]);
        $this->assertGreaterThan(0, $one->remainingMs);
        $names = \array_map(static fn (ListedLock $one): string => $one->resource, $holder->locks()->locks);
        $this->assertContains('invoices', $names);
        $this->assertSame(Verdict::Free, $holder->locks('nobody')->locks[0]->verdict);
        $hold->release();
        $other->release();
        $this->assertCount(0, $holder->locks('orders:*'));
    }

    public function testStatusAndBusyNameTheClientThatHoldsIt(): void
    {
        $holder = $this->client(clientName: 'worker-7');
        $asker = $this->client();
        $this->assertNull($asker->status('known')->heldBy);
        $lock = $holder->lock('known');
        $lock->acquire();
        $heldBy = self::named(static fn (): ResourceStatus => $asker->status('known'))->heldBy;
        $this->assertSame(['worker-7', \gethostname(), \getmypid()],
            [$heldBy['client_name'], $heldBy['host'], $heldBy['pid']]);
        $this->assertGreaterThanOrEqual(0, $heldBy['held_ms']);
        $words = 'held by worker-7 (pid ' . \getmypid() . ' on ';
        foreach ([0, 1500] as $waitMs) {
            $busy = $this->busy($asker->lock('known'), $waitMs, $words);
            $this->assertSame(\array_diff_key($heldBy, ['held_ms' => 0]),
                \array_diff_key($busy->heldBy, ['held_ms' => 0]), "after $waitMs ms");
        }
        $busy = $this->busy($asker->lock(['free', 'known']), 0);
        $this->assertSame('worker-7', $busy->heldBy['client_name'], 'who holds one of several');
        $lock->release();
    }

    /** The name is written when the lock is held: it comes later. */
    public static function named(\Closure $ask): ResourceStatus
    {
        Wait::until(static function () use ($ask, &$status): bool {
            $status = $ask();
            $held = \array_filter($status->parts ?: [$status], static fn (ResourceStatus $one): bool => $one->isHeld());
            return !\in_array(null, \array_column($held, 'heldBy'), true);
        }, 'the name of the holder', 20.0);
        return $status;
    }

    /** An attempt asks the nodes for the name for 250 ms at most, so a late machine may need several. */
    private function busy(Lock $lock, int $waitMs, string $begin = ''): BusyException
    {
        $busy = null;
        Wait::until(function () use ($lock, $waitMs, $begin, &$busy): bool {
            try {
                $lock->acquire($waitMs);
            } catch (BusyException $busy) {
                return $busy->heldBy !== null && \str_starts_with($busy->getMessage(), $begin);
            } catch (TimedOutException | NoQuorumException) {
                return false;
            }
            $this->fail('acquired');
        }, 'the name of the holder', 20.0); /* the lease lasts longer */
        return $busy;
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

    public function testStatusSaysWhoHoldsEachOfThePermits(): void
    {
        [$worker, $asker] = [$this->client(clientName: 'worker-8'), $this->client(permits: 3, fence: false)];
        $gpu = $worker->lock('gpu', permits: 3);
        $holds = [$gpu->acquire(), $gpu->acquire()];
        $status = self::named(static fn (): ResourceStatus => $asker->status('gpu'));
        $this->assertSame([Verdict::Free, '"gpu": 2 of 3 permits held', null, 3],
            [$status->verdict, $status->message, $status->token, \count($status->parts)]);
        foreach ($holds as $hold) {
            $part = $status->parts[$hold->slot()];
            $this->assertSame([Verdict::Held, $hold->token(), 'worker-8'],
                [$part->verdict, $part->token, $part->heldBy['client_name']]);
            $this->assertGreaterThan(10_000, $part->remainingMs);
            $this->assertSame($hold->token(), $gpu->with(slot: $hold->slot())->status()->token);
        }
        $last = $gpu->acquire();
        $other = $this->client(clientName: 'other');
        foreach ([$asker->status('gpu'), $gpu->status(), $other->status('gpu', permits: 3)] as $full) {
            $this->assertTrue($full->isHeld());
            $this->assertSame($last->token(), $full->parts[$last->slot()]->token);
        }
        $this->expectExceptionMessage('slot is 3; allowed for permits 3: 0 to 2');
        $asker->status('gpu', slot: 3);
    }

    public function testBusyNamesTheHolderOfThePermitThatIsWanted(): void
    {
        $holds = \array_map(fn (int $slot): Hold => $this->client(clientName: "holder-$slot")
            ->lock('gpu', permits: 2, slot: $slot)->acquire(), [0, 1]);
        foreach ([0, 1] as $slot) {
            $busy = $this->busy($this->client()->lock('gpu', permits: 2, slot: $slot), 0);
            $this->assertSame("holder-$slot", $busy->heldBy['client_name']);
        }
        \array_map(static fn (Hold $hold) => $hold->release(), $holds);
    }

    public function testStatusOfSeveralResourcesIsThatOfEach(): void
    {
        $client = $this->client();
        $held = $client->lock('b')->acquire();
        $status = $client->lock(['a', 'b', 'c'])->status();
        $this->assertSame([Verdict::Held, '"a": 1 of 3 resources held'], [$status->verdict, $status->message]);
        $this->assertSame([null, $held->token(), null], \array_column($status->parts, 'token'));
        $this->assertSame(['a', 'b', 'c'], \array_column($status->parts, 'resource'));
        $this->assertTrue($client->status(['a', 'c'])->isFree());
    }

    /** @return list<array{string, string, string}> the parts, what they are for permits, and for several resources */
    public static function verdictsOfParts(): array
    {
        return [['free held', 'free', 'held'], ['held held', 'held', 'held'], ['held split', 'split', 'held'],
            ['held unknown split', 'unknown', 'held'], ['free unknown', 'free', 'unknown'],
            ['free split', 'free', 'split'], ['free shared', 'free', 'shared'], ['free free', 'free', 'free']];
    }

    /** @dataProvider verdictsOfParts */
    public function testAVerdictIsMadeOfThoseOfTheParts(string $parts, string $ofPermits, string $ofSeveral): void
    {
        $made = static fn (string $verdict): ResourceStatus
            => new ResourceStatus('x', Verdict::from($verdict), '', null, null, []);
        $parts = \array_map($made, \explode(' ', $parts));
        $this->assertSame([$ofPermits, $ofSeveral], [ResourceStatus::ofParts($parts, true)->verdict->value,
            ResourceStatus::ofParts($parts, false)->verdict->value]);
    }

    public function testWhatIsNotKnownOfPermitsIsSaid(): void
    {
        \array_map(static fn (int $i) => self::cluster()->nodes[$i]->kill(), [0, 1, 2]);
        $client = $this->client(nodeTimeoutMs: 500, outageWaitMs: 500);
        $this->assertSame('"gpu": 0 of 2 permits held, 2 not known', $client->status('gpu', permits: 2)->message);
    }

    public function testPermitsAreRemovedByForce(): void
    {
        $gpu = $this->client()->lock('gpu', permits: 3);
        $holds = [$gpu->acquire(), $gpu->acquire(), $gpu->acquire()];
        $operator = $this->client(permits: 3, clientName: 'operator');
        $operator->remove('gpu', slot: 1);
        $this->assertSame([true, false, true],
            \array_map(static fn (ResourceStatus $one): bool => $one->isHeld(), $operator->status('gpu')->parts));
        $operator->remove('gpu');
        $this->assertNothingIsLeft();
        unset($holds);
    }

    public function testALockIsRemovedByForce(): void
    {
        $client = $this->client();
        $lock = $client->lock('removed');
        $lock->acquire();
        $client->remove('removed');
        $this->assertNothingIsLeft();
        $this->assertNotFalse($client->lock('removed')->tryAcquire());
        $this->expectException(LostException::class);
        $lock->release();
    }
}
