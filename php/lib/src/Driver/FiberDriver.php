<?php

declare(strict_types=1);

namespace Redlock\Driver;

use Redlock\EventLog;
use Redlock\Loop\Loop;
use Redlock\Loop\StreamSelectLoop;
use Redlock\Native;

/** @internal Suspends the Fiber; the loop watches one descriptor per client, only while something is pending. */
final class FiberDriver extends BlockingDriver
{
    /** @var resource */
    private $stream;
    private readonly \Closure $wake;
    private mixed $watch = null;
    private int $pending = 0;
    private int $generation = 0;

    public static function for(Native\Client $client, ?EventLog $events, Loop $loop): BlockingDriver
    {
        return $loop instanceof StreamSelectLoop
            ? new SelectDriver($client, $events, $loop)
            : new self($client, $events, $loop);
    }

    public function __construct(Native\Client $client, ?EventLog $events, private readonly Loop $loop)
    {
        parent::__construct($client, $events);
        $this->wake = Waiters::waker($client);
    }

    public function run(Native\Lock $lock, int $operation, int $arg): int
    {
        if (\Fiber::getCurrent() === null) {
            return parent::run($lock, $operation, $arg);
        }
        $suspension = $this->loop->suspension();
        if ($this->generation !== $this->client->generation()) {
            /* at the first operation of a process: a child's client has another epoll behind the same number */
            [$this->stream, $this->pending] = [Waiters::open($this->client), 0];
            $this->generation = $this->client->generation();
        }
        $flag = $this->pending === 0 ? \REDLOCK_AT_ONCE : 0; /* alone, nothing is gained by sending with others */
        $status = $lock->start($operation | $flag, $arg, $suspension);
        if ($status !== \REDLOCK_OK) {
            return $status;
        }
        $status = \REDLOCK_PENDING;
        $this->pending++;
        try {
            if ($this->pending === 1) {
                $this->watch = null;
                $this->watch = $this->loop->watch($this->stream, $this->wake);
            }
            do {
                $suspension->suspend();
            } while (($status = $lock->ended()) === \REDLOCK_PENDING);
        } catch (\FiberError $closing) {
            $status = Leave::fiber($this->client, $lock, $operation, $closing);
        } finally {
            if (--$this->pending === 0 && $this->watch !== null) {
                $this->loop->unwatch($this->watch);
            }
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
}
