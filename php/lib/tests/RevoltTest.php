<?php

declare(strict_types=1);

namespace Redlock\Tests;

use Redlock\Hold;
use Redlock\Loop\RevoltLoop;
use Revolt\EventLoop;

final class RevoltTest extends NodesTestCase
{
    protected function setUp(): void
    {
        if (!\class_exists(EventLoop::class)) {
            $this->markTestSkipped('revolt/event-loop is not installed: let REDLOCK_PHP_AUTOLOAD name an autoload.php '
                . 'that has it');
        }
        parent::setUp();
    }

    public function testManyFibersShareOneConnectionPerNode(): void
    {
        $client = $this->client(loop: new RevoltLoop());
        $held = 0;
        for ($i = 0; $i < 64; $i++) {
            EventLoop::queue(static function () use ($client, $i, &$held): void {
                $held += $client->lock("resource:$i")->run(static fn (Hold $lock): int => (int) $lock->isHeld());
            });
        }
        EventLoop::run();
        $this->assertSame(64, $held);
        $client->status('resource:0'); /* the locks waited for a majority only, this is for all */
        $this->assertConnections(5);
        $this->assertNothingIsLeft();
    }

    public function testTheRunningLoopIsFound(): void
    {
        $client = $this->client();
        $events = [];
        EventLoop::queue(static function () use ($client, &$events): void {
            $holder = $client->lock('found')->acquire();
            EventLoop::queue(static function () use ($client, &$events): void {
                $events[] = 'waits';
                $client->lock('found')->run(static function () use (&$events): void {
                    $events[] = 'holds';
                });
            });
            EventLoop::delay(0.05, static function () use ($holder, &$events): void {
                $events[] = 'released';
                $holder->release();
            });
        });
        EventLoop::run();
        $this->assertSame(['waits', 'released', 'holds'], $events);
    }

    public function testAFiberBlocksWhileNoLoopRuns(): void
    {
        $client = $this->client();
        EventLoop::queue(static fn () => $client->lock('in the loop')->run(static fn () => null));
        EventLoop::run();
        $fiber = new \Fiber(static fn (): string => $client->lock('after it')->run(static fn (): string => 'done'));
        $fiber->start();
        $this->assertTrue($fiber->isTerminated(), 'nobody would resume it');
        $this->assertSame('done', $fiber->getReturn());
    }

    public function testFibersHoldALockOneAtATime(): void
    {
        $client = $this->client(loop: new RevoltLoop(), retryDelayMs: 5);
        $inside = $most = $done = 0;
        for ($i = 0; $i < 10; $i++) {
            EventLoop::queue(static function () use ($client, &$inside, &$most, &$done): void {
                $client->lock('one')->run(static function () use (&$inside, &$most): void {
                    $most = \max($most, ++$inside);
                    $suspension = EventLoop::getSuspension();
                    EventLoop::delay(0.002, static fn () => $suspension->resume());
                    $suspension->suspend();
                    $inside--;
                });
                $done++;
            });
        }
        EventLoop::run();
        $this->assertSame([1, 10], [$most, $done]);
    }

    public function testAnExceptionThrownIntoAWaiterEndsTheWait(): void
    {
        $client = $this->client(loop: new RevoltLoop());
        $holder = $client->lock('thrown');
        $holder->acquire();
        $seen = null;
        $free = false;
        EventLoop::queue(static function () use ($client, &$seen, &$free): void {
            $suspension = EventLoop::getSuspension();
            EventLoop::defer(static fn () => $suspension->throw(new \DomainException('enough')));
            try {
                $client->lock('thrown')->acquire(-1);
            } catch (\DomainException $seen) {
            }
            $free = $client->lock('another')->tryAcquire() !== false; /* the Fiber goes on as before */
        });
        EventLoop::run();
        $this->assertInstanceOf(\DomainException::class, $seen);
        $this->assertTrue($free);
        $holder->release();
        $this->assertNothingIsLeft();
    }
}
