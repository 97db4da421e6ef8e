<?php

declare(strict_types=1);

namespace Redlock\Driver;

use Redlock\EventLog;
use Redlock\Loop\StreamSelectLoop;
use Redlock\Native;

/** @internal Suspends the Fiber in a StreamSelectLoop, which keeps the client's descriptor as long as this is there. */
final class SelectDriver extends BlockingDriver
{
    private ?int $watch = null;
    private int $pending = 0;
    private int $generation = 0;
    private ?\WeakReference $lastFiber = null;

    public function __construct(Native\Client $client, ?EventLog $events, private readonly StreamSelectLoop $loop)
    {
        parent::__construct($client, $events);
    }

    public function run(Native\Lock $lock, int $operation, int $arg): int
    {
        $fiber = \Fiber::getCurrent();
        if ($fiber === null) {
            return parent::run($lock, $operation, $arg);
        }
        if ($this->generation !== $this->client->generation()) {
            $this->open();
        }
        $flag = $this->pending === 0 ? \REDLOCK_AT_ONCE : 0; /* alone, nothing is gained by sending with others */
        /* who drops a Fiber ends its wait: nothing here keeps it; the last reference is often the next one, too */
        $waiter = $this->lastFiber = \WeakReference::create($fiber);
        $status = $lock->start($operation | $flag, $arg, $waiter);
        if ($status !== \REDLOCK_OK) {
            return $status;
        }
        $status = \REDLOCK_PENDING;
        $this->pending++;
        try {
            do {
                \Fiber::suspend();
            } while (($status = $lock->ended()) === \REDLOCK_PENDING);
        } catch (\FiberError $closing) {
            $status = Leave::fiber($this->client, $lock, $operation, $closing);
        } finally {
            $this->pending--;
            if ($status === \REDLOCK_PENDING) {
                Leave::cancelled($lock, $operation);
            }
        }
        if ($this->events !== null) {
            $this->writeEvents($lock, $operation);
        }
        return $status;
    }

    public function inFlight(): int
    {
        return $this->pending + $this->bodies;
    }

    /** At the first operation of a process: a child's client has another epoll behind the same number. */
    private function open(): void
    {
        $this->leave();
        [$this->pending, $this->generation] = [0, $this->client->generation()];
        $driver = \WeakReference::create($this);
        $isIdle = static fn (): bool => ($driver->get()?->pending ?? 0) === 0;
        $this->watch = $this->loop->keep(Waiters::open($this->client), $this->client, $isIdle);
    }

    private function leave(): void
    {
        if ($this->watch !== null) {
            $this->loop->unwatch($this->watch);
        }
    }

    public function __destruct()
    {
        $this->leave();
    }
}
