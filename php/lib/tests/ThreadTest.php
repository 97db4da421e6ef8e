<?php

declare(strict_types=1);

namespace Redlock\Tests;

use parallel\Channel;
use parallel\Future;
use parallel\Runtime;
use Redlock\Client;

/** Several PHP threads in one process: each has clients of its own. */
final class ThreadTest extends NodesTestCase
{
    private const THREADS = 4;

    protected function setUp(): void
    {
        if (!\extension_loaded('parallel')) {
            $this->markTestSkipped('the extension parallel is not installed');
        }
        parent::setUp();
    }

    /** @return array<string, mixed> the same in all threads, so that they would share a client if they could */
    protected function config(): array
    {
        return ['retry_delay_ms' => 5] + parent::config();
    }

    private static function thread(): Runtime
    {
        return new Runtime(__DIR__ . '/bootstrap.php');
    }

    private static function start(Runtime $thread, string $body, mixed ...$arguments): Future
    {
        return $thread->run(ThreadBodies::caller(), [$body, $arguments]);
    }

    /**
     * Runs the body in several threads at the same time.
     *
     * @return list<mixed> what each returned
     */
    private static function inThreads(string $body, mixed ...$arguments): array
    {
        $threads = \array_map(self::thread(...), \range(1, self::THREADS));
        $futures = \array_map(
            static fn (Runtime $thread): Future => self::start($thread, $body, ...$arguments), $threads);
        try {
            Wait::until(static fn (): bool => !\in_array(false, \array_map(
                static fn (Future $future): bool => $future->done(), $futures), true), "$body() in all threads", 60);
        } catch (\RuntimeException $late) {
            \array_map(static fn (Runtime $thread) => $thread->kill(), $threads);
            throw $late;
        }
        $values = \array_map(static fn (Future $future): mixed => $future->value(), $futures);
        \array_map(static fn (Runtime $thread) => $thread->close(), $threads);
        return $values;
    }

    public function testThreadsHoldALockOneAtATime(): void
    {
        $file = \tempnam(\sys_get_temp_dir(), 'redlock');
        self::inThreads('count', $this->config(), $file, 25);
        $this->assertSame((string) (25 * self::THREADS), \file_get_contents($file));
        \unlink($file);
        $this->assertNothingIsLeft();
    }

    /** The waiter is found by the tags of ended operations, which each thread numbers by itself. */
    public function testFibersAreNotWokenByAnotherThread(): void
    {
        $held = self::inThreads('holdInFibers', $this->config(), 10, 16);
        $this->assertSame(\array_fill(0, self::THREADS, 160), $held);
        $this->assertNothingIsLeft();
    }

    public function testADrainLeavesTheLocksOfOtherThreads(): void
    {
        $client = Client::fromArray($this->config());
        $lock = $client->lock('main');
        $lock->acquire();
        $drained = self::inThreads('drain', $this->config());
        $this->assertSame(\array_fill(0, self::THREADS, true), $drained);
        $this->assertTrue($lock->isHeld());
        $lock->extend();
        $this->assertSame(['main'], \array_keys(self::cluster()->keys()));
        $lock->release();
    }

    public function testWhatAThreadHoldsEndsWithIt(): void
    {
        $thread = self::thread();
        $this->assertTrue(self::start($thread, 'keep', $this->config())->value());
        $this->assertSame(['kept'], \array_keys(self::cluster()->keys()));
        $this->assertGreaterThan(0, self::cluster()->connections($this->uniqueName()));
        $thread->close();
        $this->assertNothingIsLeft();
        Wait::until(fn (): bool => self::cluster()->connections($this->uniqueName()) === 0,
            'the connections of the ended thread to close');
    }

    public function testAChildHoldsNothingOfItsParentsThreads(): void
    {
        $client = Client::fromArray($this->config());
        [$ready, $end] = [new Channel(1), new Channel(1)];
        $thread = self::thread();
        $held = self::start($thread, 'hold', $this->config(), $ready, $end);
        $ready->recv();
        try {
            $seen = $this->inChild(static fn (): string => $client->lock('child')->run(
                static fn (): string => $client->lock('thread')->tryAcquire() ? 'stole' : 'refused'));
            $this->assertSame('refused', $seen);
            $this->assertSame(['thread'], \array_keys(self::cluster()->keys()));
        } finally {
            $end->send(true); /* a thread that waits would keep the process from ending */
        }
        $this->assertTrue($held->value());
        $thread->close();
        $this->assertNothingIsLeft();
    }

    public function testAClientIsNotPassedToAThread(): void
    {
        $thread = self::thread();
        try {
            self::start($thread, 'take', Client::fromArray($this->config()));
            $this->fail('the client was passed');
        } catch (Runtime\Error\IllegalParameter | Runtime\Error\IllegalFunction $error) {
            $this->addToAssertionCount(1);
        } finally {
            $thread->close();
        }
    }
}
