<?php

declare(strict_types=1);

namespace Redlock\Tests;

use Redlock\Loop\Loop;
use Redlock\Loop\Suspension;

/** A small loop for Fibers on stream_select: runs tasks until all of them have ended. */
final class StreamSelectLoop implements Loop
{
    private const LOOK_AFTER_S = 1;

    /** @var array<int, resource> */
    private array $streams = [];
    /** @var array<int, \Closure(): void> */
    private array $callbacks = [];
    /** @var \WeakMap<\Fiber, FiberSuspension> */
    private readonly \WeakMap $suspensions;
    /** @var array<int, true> streams that stream_select can wait for, by their number */
    private array $fit = [];
    /** @var \SplPriorityQueue<int, FiberSuspension> */
    private \SplPriorityQueue $sleeping;
    private int $sleepers = 0;
    private int $lastWatch = 0;

    public function __construct()
    {
        $this->suspensions = new \WeakMap();
        $this->sleeping = new \SplPriorityQueue();
        $this->sleeping->setExtractFlags(\SplPriorityQueue::EXTR_BOTH);
    }

    /**
     * Runs each task in a Fiber of its own; returns their results under the same keys. The first error leaves.
     *
     * @param array<int|string, \Closure(): mixed> $tasks
     * @return array<int|string, mixed>
     */
    public function run(array $tasks): array
    {
        $running = \count($tasks);
        $body = static function (\Closure $task) use (&$running): mixed {
            try {
                return $task();
            } finally {
                $running--;
            }
        };
        $fibers = \array_map(static fn (\Closure $task): \Fiber => new \Fiber($body), $tasks);
        foreach ($fibers as $name => $fiber) {
            $fiber->start($tasks[$name]);
        }
        while ($running > 0) {
            $seconds = self::LOOK_AFTER_S;
            $microseconds = 0;
            if ($this->sleepers > 0) {
                [$seconds, $microseconds] = $this->wakeSleepers() ? [0, 0] : $this->nextSleeper();
            }
            $read = $this->streams;
            $write = $except = null;
            /* false: a signal came */
            $count = $read ? @\stream_select($read, $write, $except, $seconds, $microseconds) : 0;
            if (!$count) {
                $count === 0 && $this->nothingCame($seconds, $microseconds);
                continue;
            }
            foreach ($read as $watch => $_) {
                isset($this->callbacks[$watch]) && ($this->callbacks[$watch])();
            }
        }
        return \array_map(static fn (\Fiber $fiber): mixed => $fiber->getReturn(), $fibers);
    }

    /** Suspends the calling Fiber for a while. */
    public function delay(int $ms): void
    {
        $suspension = $this->suspension();
        $this->sleeping->insert($suspension, -(\hrtime(true) + $ms * 1_000_000));
        $this->sleepers++;
        $suspension->suspend();
    }

    public function watch($stream, \Closure $ready): mixed
    {
        $this->fit[(int) $stream] ??= $this->refuseHighDescriptor($stream);
        $this->streams[++$this->lastWatch] = $stream;
        $this->callbacks[$this->lastWatch] = $ready;
        return $this->lastWatch;
    }

    public function unwatch(mixed $watch): void
    {
        unset($this->streams[$watch], $this->callbacks[$watch]);
    }

    public function suspension(): Suspension
    {
        $fiber = \Fiber::getCurrent() ?? throw new \LogicException('only a Fiber can be suspended');
        return $this->suspensions[$fiber] ??= new FiberSuspension($fiber);
    }

    private function nothingCame(int $seconds, int $microseconds): void
    {
        if ($seconds < self::LOOK_AFTER_S || $this->sleepers > 0) {
            $this->streams || \usleep($seconds * 1_000_000 + $microseconds);
            return;
        }
        if ($this->streams !== []) {
            return;
        }
        throw new \LogicException('all Fibers wait for something that this loop does not know');
    }

    private function wakeSleepers(): bool
    {
        $now = \hrtime(true); /* who sleeps again meanwhile waits for the next turn */
        $woken = false;
        while (!$this->sleeping->isEmpty() && -$this->sleeping->top()['priority'] <= $now) {
            $this->sleepers--;
            $this->sleeping->extract()['data']->resume();
            $woken = true;
        }
        return $woken;
    }

    /** @return array{int, int} seconds and microseconds until the next one wakes */
    private function nextSleeper(): array
    {
        $us = (int) \max(0, \ceil((-$this->sleeping->top()['priority'] - \hrtime(true)) / 1000));
        return [\intdiv($us, 1_000_000), $us % 1_000_000];
    }

    /** stream_select knows descriptors below 1024 only, and says so no earlier than when it waits. */
    private function refuseHighDescriptor($stream): bool
    {
        $read = [$stream];
        $write = $except = null;
        \error_clear_last();
        @\stream_select($read, $write, $except, 0, 0);
        if (\error_get_last() !== null) { /* PHP 8.1 warns and goes on without the descriptor */
            throw new \RuntimeException(
                'stream_select can not wait for this descriptor (it knows those below 1024)');
        }
        return true;
    }
}
