<?php

declare(strict_types=1);

namespace Redlock\Driver;

use Redlock\EventLog;
use Redlock\Loop\Loop;
use Redlock\Native;

/** @internal Suspends the Fiber; the loop watches the client's descriptor only while something is pending. */
final class FiberDriver extends SuspendingDriver
{
    /** @var resource */
    private $stream;
    private readonly \Closure $wake;
    private mixed $watch = null;

    public function __construct(Native\Client $client, ?EventLog $events, private readonly Loop $loop)
    {
        parent::__construct($client, $events);
        $this->wake = Waiters::waker($client);
    }

    protected function waiter(): mixed
    {
        return $this->loop->suspension();
    }

    protected function suspend(mixed $waiter): bool
    {
        $waiter->suspend();
        return true;
    }

    protected function begin(): void
    {
        [$this->stream, $this->watch] = [Waiters::open($this->client), null];
        parent::begin();
    }

    protected function watch(): void
    {
        if (\count($this->waiting) === 1) {
            $this->watch = null;
            $this->watch = $this->loop->watch($this->stream, $this->wake);
        }
    }

    protected function unwatch(): void
    {
        if (\count($this->waiting) === 0 && $this->watch !== null) {
            $this->loop->unwatch($this->watch);
        }
    }
}
