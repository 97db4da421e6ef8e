<?php

declare(strict_types=1);

namespace Redlock\Loop;

/** A small loop for Fibers on stream_select: runs tasks until all of them have ended. */
final class StreamSelectLoop implements Loop
{
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
        $fibers = \array_map(static fn (\Closure $task): \Fiber => new \Fiber($task), $tasks);
        foreach ($fibers as $fiber) {
            $fiber->start();
        }
        while ($this->anyUnfinished($fibers)) {
            $this->waitForStreams(!$this->sleeping->isEmpty() && $this->wakeSleepers());
        }
        return \array_map(static fn (\Fiber $fiber): mixed => $fiber->getReturn(), $fibers);
    }

    /** Suspends the calling Fiber for a while. */
    public function delay(int $ms): void
    {
        $suspension = $this->suspension();
        $this->sleeping->insert($suspension, -(\hrtime(true) + $ms * 1_000_000));
        $suspension->suspend();
    }

    public function watch($stream, \Closure $ready): mixed
    {
        $this->fit[(int) $stream] ??= $this->refuseHighDescriptor($stream);
        $watch = ++$this->lastWatch;
        $this->streams[$watch] = $stream;
        $this->callbacks[$watch] = $ready;
        return $watch;
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

    /** @param array<int|string, \Fiber> $fibers */
    private function anyUnfinished(array $fibers): bool
    {
        foreach ($fibers as $fiber) {
            if (!$fiber->isTerminated()) {
                return true;
            }
        }
        return false;
    }

    private function wakeSleepers(): bool
    {
        $now = \hrtime(true); /* who sleeps again meanwhile waits for the next turn */
        $woken = false;
        while (!$this->sleeping->isEmpty() && -$this->sleeping->top()['priority'] <= $now) {
            $this->sleeping->extract()['data']->resume();
            $woken = true;
        }
        return $woken;
    }

    private function waitForStreams(bool $onlyLook): void
    {
        $seconds = $onlyLook ? 0 : null;
        $microseconds = 0;
        if (!$onlyLook && !$this->sleeping->isEmpty()) {
            $us = (int) \max(0, \ceil((-$this->sleeping->top()['priority'] - \hrtime(true)) / 1000));
            [$seconds, $microseconds] = [\intdiv($us, 1_000_000), $us % 1_000_000];
        }
        if ($this->streams === []) {
            if ($seconds === null) {
                throw new \LogicException('all Fibers wait for something that this loop does not know');
            }
            \usleep($seconds * 1_000_000 + $microseconds);
            return;
        }
        $read = $this->streams;
        $write = $except = null;
        $count = @\stream_select($read, $write, $except, $seconds, $microseconds); /* false: a signal came */
        foreach ($count > 0 ? $read : [] as $watch => $_) {
            if (isset($this->callbacks[$watch])) {
                ($this->callbacks[$watch])();
            }
        }
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
                'stream_select can not wait for this descriptor (it knows those below 1024): use another '
                . 'loop, Redlock\Loop\RevoltLoop for example');
        }
        return true;
    }
}
