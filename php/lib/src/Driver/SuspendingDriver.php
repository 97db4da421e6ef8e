<?php

declare(strict_types=1);

namespace Redlock\Driver;

use Redlock\EventLog;
use Redlock\Native;
use Redlock\Testing\Handle;

/** @internal Suspends the caller, a Fiber or a coroutine, while others go on. */
abstract class SuspendingDriver extends Driver
{
    /** @var \WeakMap<Native\Lock, list<\stdClass>> releases that come after what is in flight, "of" whom */
    private \WeakMap $next;

    /** @var \WeakMap<Native\Lock, true> weak, since a coroutine of Swow that is killed runs no finally */
    protected \WeakMap $waiting;

    /** The process of the last operation, as Native\Client::generation() counts them. */
    protected int $generation = 0;

    /** @param ?BlockingDriver $outside for callers that can not be suspended */
    public function __construct(
        Native\Client $client,
        ?EventLog $events,
        private readonly ?BlockingDriver $outside = null,
    ) {
        parent::__construct($client, $events);
        $this->waiting = new \WeakMap();
        $this->next = new \WeakMap();
    }

    public function run(Native\Lock|Handle $lock, int $operation, int $arg): int
    {
        $waiter = $this->waiter();
        if ($waiter === null) {
            return $this->outside->run($lock, $operation, $arg);
        }
        if ($this->generation !== $this->client->generation()) {
            $this->begin();
        }
        $isAlone = $this->isAlone();
        if (!$isAlone && isset($this->waiting[$lock])) { /* until its waiter has heard of the end: it has one */
            $status = $operation === \REDLOCK_RELEASE ? $this->awaitTurn($lock, $waiter) : \REDLOCK_IN_FLIGHT;
            if ($status !== \REDLOCK_PENDING) {
                return $status;
            }
            $isAlone = $this->isAlone();
        }
        $flag = $isAlone ? \REDLOCK_AT_ONCE : 0; /* alone, nothing is gained by sending with others */
        $status = $lock->start($operation | $flag, $arg, $waiter);
        if ($status !== \REDLOCK_OK) {
            return $status;
        }
        $status = \REDLOCK_PENDING;
        $this->waiting[$lock] = true;
        try {
            $this->watch();
            while (($status = $lock->ended()) === \REDLOCK_PENDING && $this->suspend($waiter)) {
                continue;
            }
        } catch (\FiberError $closing) {
            $status = Leave::fiber($this->client, $lock, $operation, $closing);
        } finally {
            unset($this->waiting[$lock]);
            $this->unwatch();
            if ($status === \REDLOCK_PENDING) {
                $status = Leave::cancelled($lock, $operation);
            }
            \count($this->next) === 0 || $this->resumeNext($lock);
        }
        $this->events === null || $this->writeEvents($lock, $operation);
        return $status;
    }

    public function inFlight(): int
    {
        return \count($this->waiting) + $this->bodies + ($this->outside?->inFlight() ?? 0);
    }

    /** What Waiters::resume() resumes the caller by; null: it can not be suspended. */
    abstract protected function waiter(): mixed;

    /** Until the caller is resumed; false if it was cancelled. */
    abstract protected function suspend(mixed $waiter): bool;

    /** At the first operation of a process: a child's client has another epoll behind the same number. */
    protected function begin(): void
    {
        $this->generation = $this->client->generation();
        $this->waiting = new \WeakMap();
    }

    /** The client's descriptor is watched between these two. */
    abstract protected function watch(): void;

    abstract protected function unwatch(): void;

    protected function isAlone(): bool
    {
        return \count($this->waiting) === 0;
    }

    /** REDLOCK_PENDING once nothing is in flight on it, or what a release came to that can not wait for that. */
    private function awaitTurn(Native\Lock $lock, mixed $waiter): int
    {
        $status = \REDLOCK_PENDING;
        while ($status === \REDLOCK_PENDING && isset($this->waiting[$lock])) {
            $turn = (object) ['of' => $waiter];
            $this->next[$lock] = [...$this->next[$lock] ?? [], $turn];
            $isCancelled = true;
            try {
                $isCancelled = !$this->suspend($waiter);
            } finally {
                $turn->of = null;
                $status = $isCancelled ? Leave::release($lock) : \REDLOCK_PENDING;
            }
        }
        return $status;
    }

    private function resumeNext(Native\Lock $lock): void
    {
        $next = $this->next[$lock] ?? [];
        unset($this->next[$lock]);
        foreach ($next as $turn) {
            $turn->of === null || Waiters::resume($turn->of);
        }
    }

    /** A logger that fails leaves no lock behind. */
    private function writeEvents(Native\Lock $lock, int $operation): void
    {
        try {
            $this->events?->write();
        } catch (\Throwable $failure) {
            Leave::cancelled($lock, $operation);
            throw $failure;
        }
    }
}
