<?php

declare(strict_types=1);

namespace Redlock\Tests;

use Redlock\Exception\BusyException;
use Redlock\Hold;
use Swow\Coroutine;

final class SwowTest extends NodesTestCase
{
    protected function setUp(): void
    {
        if (!\extension_loaded('swow')) {
            $this->markTestSkipped('the extension swow is not installed');
        }
        parent::setUp();
    }

    /** As Wait::until: usleep() lets other coroutines go on. */
    public function testManyCoroutinesShareOneConnectionPerNode(): void
    {
        $client = $this->client();
        $held = 0;
        for ($i = 0; $i < 50; $i++) {
            Coroutine::run(static function () use ($client, $i, &$held): void {
                $held += $client->lock("resource:$i")->run(static fn (Hold $lock): int => (int) $lock->isHeld());
            });
        }
        Wait::until(static function () use (&$held): bool {
            return $held === 50;
        }, 'all locks');
        $client->status('resource:0');
        $this->assertConnections(5);
        $this->assertNothingIsLeft();
        $this->assertSame(0, $client->inFlight());
    }

    public function testOthersRunWhileOneWaits(): void
    {
        $client = $this->client();
        $holder = $client->lock('busy');
        $holder->acquire();
        $seen = null;
        $ticks = 0;
        Coroutine::run(static function () use ($client, &$seen): void {
            try {
                $client->lock('busy')->acquire(500);
            } catch (\Throwable $seen) {
            }
        });
        while ($seen === null && $ticks < 10000) {
            \usleep(1000);
            $ticks++;
        }
        $this->assertInstanceOf(BusyException::class, $seen);
        $this->assertGreaterThan(20, $ticks);
    }

    public function testAKilledWaiterLeavesNoKey(): void
    {
        $client = $this->client(retryDelayMs: 5);
        $holder = $client->lock('killed');
        $holder->acquire();
        $waiter = Coroutine::run(static fn () => $client->lock('killed')->acquire(-1));
        Wait::until(static fn (): bool => $client->describe()['attempts'] >= 3, 'the waiter to try again');
        $waiter->kill();
        Wait::until(static fn (): bool => $client->inFlight() === 0, 'the waiter to end');
        $holder->release();
        $this->assertNothingIsLeft();
        $this->assertNotFalse($client->lock('killed')->tryAcquire());
    }

    public function testACancelWakesNoKilledWaiter(): void
    {
        $client = $this->client();
        $holder = $client->lock('killed');
        $holder->acquire();
        $waiter = Coroutine::run(static fn () => $client->lock('killed')->acquire(-1));
        Wait::until(static fn (): bool => $client->describe()['waiting'] === 1, 'the waiter to wait');
        $waiter->kill();
        for ($others = []; \count($others) < 300;) { /* some of them have the object ids of what was freed */
            $others[] = $client->lock('other');
            \end($others)->cancel();
            $others[] = new \stdClass();
        }
        $this->assertSame(0, $client->inFlight());
        $holder->release();
        $this->assertNothingIsLeft();
    }

    public function testOthersAreWokenAfterAKilledWaiterWhoseLockIsKept(): void
    {
        $client = $this->client();
        $holders = [$client->lock('killed')->acquire(), $client->lock('other')->acquire()];
        $kept = $client->lock('killed');
        $waiter = Coroutine::run(static fn () => $kept->acquire(-1));
        $isWoken = false;
        Coroutine::run(static function () use ($client, &$isWoken): void {
            $isWoken = $client->lock('other')->run(static fn (): bool => true, -1);
        });
        Wait::until(static fn (): bool => $client->describe()['waiting'] === 2, 'the waiters to wait');
        $waiter->kill();
        $holders[0]->release();
        $holders[1]->release();
        Wait::until(static function () use (&$isWoken): bool {
            return $isWoken;
        }, 'the other waiter');
        $kept->cancel();
        $this->assertFalse($kept->isHeld());
        $this->assertNothingIsLeft();
    }
}
