<?php

declare(strict_types=1);

namespace Redlock\Tests;

use Redlock\Exception\InvalidOptionException;
use Redlock\Exception\LostException;
use Redlock\Exception\NotHeldException;
use Redlock\Hold;
use Redlock\Verdict;

final class KindsTest extends NodesTestCase
{
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
        $lock = $this->client()->lock('report')->acquire();
        $this->assertFalse($lock->isShared());
        $reader = $this->client(clientName: 'reader')->lock('report', shared: true);
        $this->assertFalse($reader->tryAcquire());
        $lock->downgrade();
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
        $both = function (Hold $one, Hold $two) use ($client): array {
            $this->assertFalse($client->lock('gpu', permits: 2)->tryAcquire());
            $one->extend();
            return [$one->slot(), $two->slot()];
        };
        $slots = $permits[0]->run(
            fn (Hold $one): array => $permits[1]->run(fn (Hold $two): array => $both($one, $two)));
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

    public function testAClientWhoseLocksHaveANumberHasPermitsWithout(): void
    {
        $client = $this->client(fence: true);
        $this->assertNull($client->lock('gpu', permits: 2)->run(static fn (Hold $hold): ?int => $hold->fence()));
        $this->assertTrue($client->status('gpu', permits: 2)->isFree());
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
        $hold = $lock->acquire();
        $this->assertSame($hold, $lock->tryAcquire());
        $seen = $lock->run(static fn (Hold $again): array => [$again === $hold, $lock->run(static fn (): int => 7)]);
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

    public function testAnInnerBodyThatReleasesEarlyKeepsTheOuterHold(): void
    {
        $client = $this->client();
        $lock = $client->lock('tree', reentrant: true);
        $returns = static fn (Hold $hold) => (string) $hold->release();
        $fails = static fn (Hold $hold) => throw new \DomainException((string) $hold->release());
        foreach ([$returns, $fails] as $inner) {
            $lock->run(function (Hold $hold) use ($client, $lock, $inner): void {
                try {
                    $lock->run($inner);
                    $this->fail('the inner body is not told');
                } catch (NotHeldException $early) {
                    $this->assertSame(['"tree" is not held: the body has released it already, and the outer one still '
                        . 'holds it', ''], [$early->getMessage(), $early->result]);
                } catch (\DomainException) {
                }
                $this->assertTrue($hold->isHeld());
                $this->assertFalse($client->lock('tree')->tryAcquire());
            });
            $this->assertNothingIsLeft();
        }
    }

    public function testALostReentrantLockIsNotTakenAgainInside(): void
    {
        $lock = $this->client()->lock('tree', ttlMs: 4000, nodeTimeoutMs: 1000, reentrant: true);
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
}
