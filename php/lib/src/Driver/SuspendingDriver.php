<?php

declare(strict_types=1);

namespace Redlock\Driver;

use Redlock\EventLog;
use Redlock\Native;
use Swoole\Coroutine;

/** @internal Suspends the caller, a Fiber or a coroutine, while others go on. */
abstract class SuspendingDriver extends Driver
{
    /** How many callers are suspended. */
    protected int $pending = 0;

    /** @var array<int, mixed> the waiters of acquisitions, by the ids of the native locks */
    private array $acquiring = [];

    /** The process of the last operation, as Native\Client::generation() counts them. */
    private int $generation = 0;

    /** @param ?BlockingDriver $outside for callers that can not be suspended */
    public function __construct(
        Native\Client $client,
        ?EventLog $events,
        private readonly ?BlockingDriver $outside = null,
    ) {
        parent::__construct($client, $events);
    }

    public function run(Native\Lock $lock, int $operation, int $arg): int
    {
        $waiter = $this->waiter();
        if ($waiter === null) {
            return $this->outside->run($lock, $operation, $arg);
        }
        $this->prepare();
        $flag = $this->isAlone() ? \REDLOCK_AT_ONCE : 0; /* alone, nothing is gained by sending with others */
        $status = $lock->start($operation | $flag, $arg, $waiter);
        if ($status !== \REDLOCK_OK) {
            return $status;
        }
        $status = \REDLOCK_PENDING;
        $this->pending++;
        if ($operation === \REDLOCK_ACQUIRE) {
            $this->acquiring[\spl_object_id($lock)] = $waiter;
        }
        try {
            $this->watch($lock);
            while (($status = $lock->ended()) === \REDLOCK_PENDING && $this->suspend($waiter)) {
                continue;
            }
        } catch (\FiberError $closing) {
            $status = Leave::fiber($this->client, $lock, $operation, $closing);
        } finally {
            $this->pending--;
            if ($operation === \REDLOCK_ACQUIRE) {
                unset($this->acquiring[\spl_object_id($lock)]);
            }
            $this->unwatch($lock);
            if ($status === \REDLOCK_PENDING) {
                $status = Leave::cancelled($lock, $operation);
            }
        }
        $this->events === null || $this->writeEvents($lock, $operation);
        return $status;
    }

    public function cancel(Native\Lock $lock): void
    {
        $this->outside === null ? $lock->cancel() : $this->outside->cancel($lock);
        $this->resume($lock);
    }

    /** Wakes the waiter, which then looks at its acquisition. */
    final public function resume(Native\Lock $lock): void
    {
        $waiter = $this->acquiring[\spl_object_id($lock)] ?? null;
        \is_int($waiter) ? Coroutine::resume($waiter) : $waiter?->resume();
    }

    public function inFlight(): int
    {
        return $this->pending + $this->bodies + ($this->outside?->inFlight() ?? 0);
    }

    /** What Waiters::wake() resumes the caller by; null: it can not be suspended. */
    abstract protected function waiter(): mixed;

    /** Until the caller is resumed; false if it was cancelled. */
    abstract protected function suspend(mixed $waiter): bool;

    /** Before an operation is started. */
    abstract protected function prepare(): void;

    /** The client's descriptor is watched between these two. */
    abstract protected function watch(Native\Lock $lock): void;

    abstract protected function unwatch(Native\Lock $lock): void;

    /** At the first operation of a process: a child's client has another epoll behind the same number. */
    final protected function isNewProcess(): bool
    {
        $before = $this->generation;
        $this->generation = $this->client->generation();
        if ($this->generation === $before) {
            return false;
        }
        $this->acquiring = [];
        return true;
    }

    protected function isAlone(): bool
    {
        return $this->pending === 0;
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
