<?php

declare(strict_types=1);

namespace Redlock\Loop;

use Redlock\Driver\Waiters;
use Redlock\Native;

/** A small loop for Fibers on stream_select: runs tasks until all of them have ended. */
final class StreamSelectLoop implements Loop
{
    private const LOOK_AFTER_S = 1;

    /** @var array<int, resource> */
    private array $streams = [];
    /** @var array<int, \Closure(): void> */
    private array $callbacks = [];
    /** @var array<int, Native\Client> whose descriptors some of the streams are */
    private array $clients = [];
    /** @var array<int, \Closure(): bool> whether nobody waits for one of them */
    private array $idle = [];
    /** Whose descriptor is the only stream: it is waited for without stream_select. */
    private ?Native\Client $only = null;
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
            if ($this->only !== null && $this->sleepers === 0) {
                $client = $this->only;
                for ($waiter = $client->await(self::LOOK_AFTER_S * 1000); $waiter; $waiter = $client->next()) {
                    $waiter instanceof \WeakReference ? $waiter->get()?->resume() : Waiters::wake($waiter);
                }
                $waiter === false && $this->nothingCame(self::LOOK_AFTER_S, 0);
                continue;
            }
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
                $client = $this->clients[$watch] ?? null;
                if ($client === null) {
                    isset($this->callbacks[$watch]) && ($this->callbacks[$watch])();
                    continue;
                }
                for ($waiter = $client->advance(); $waiter !== null; $waiter = $client->next()) {
                    if ($waiter instanceof \WeakReference) {
                        $waiter->get()?->resume();
                    } else {
                        Waiters::wake($waiter);
                    }
                }
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
        $watch = $this->add($stream);
        $this->callbacks[$watch] = $ready;
        $this->setOnly();
        return $watch;
    }

    public function unwatch(mixed $watch): void
    {
        unset($this->streams[$watch], $this->callbacks[$watch], $this->clients[$watch], $this->idle[$watch]);
        $this->setOnly();
    }

    /**
     * @internal Wakes those whose operations on the client ended; nobody waits for one while $isIdle() says so.
     * @param resource $stream the client's descriptor
     * @return int for unwatch()
     */
    public function keep($stream, Native\Client $client, \Closure $isIdle): int
    {
        $watch = $this->add($stream);
        [$this->clients[$watch], $this->idle[$watch]] = [$client, $isIdle];
        $this->setOnly();
        return $watch;
    }

    /** @param resource $stream */
    private function add($stream): int
    {
        $this->fit[(int) $stream] ??= $this->refuseHighDescriptor($stream);
        $this->streams[++$this->lastWatch] = $stream;
        return $this->lastWatch;
    }

    private function setOnly(): void
    {
        $this->only = \count($this->streams) === 1 ? $this->clients[\array_key_first($this->streams)] ?? null : null;
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
        foreach ($this->streams as $watch => $_) {
            if (!isset($this->idle[$watch]) || !($this->idle[$watch])()) {
                return;
            }
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
                'stream_select can not wait for this descriptor (it knows those below 1024): use another '
                . 'loop, Redlock\Loop\RevoltLoop for example');
        }
        return true;
    }
}
