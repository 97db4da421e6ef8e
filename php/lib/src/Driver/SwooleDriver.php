<?php

declare(strict_types=1);

namespace Redlock\Driver;

use Redlock\EventLog;
use Redlock\Native;
use Redlock\Testing\Handle;
use Swoole\Coroutine;

/** @internal Suspends the coroutine and never the worker. */
final class SwooleDriver extends SuspendingDriver
{
    private readonly SwooleWatch $watch;

    public function __construct(Native\Client $client, ?EventLog $events, BlockingDriver $outside)
    {
        parent::__construct($client, $events, $outside);
        $this->watch = SwooleWatch::of($client);
    }

    public function run(Native\Lock|Handle $lock, int $operation, int $arg): int
    {
        return $operation === \REDLOCK_RELEASE && Coroutine::getCid() > 0 && Coroutine::isCanceled()
            ? Leave::release($lock) /* a cancelled coroutine is to end, not to wait */
            : parent::run($lock, $operation, $arg);
    }

    public function owner(): ?\WeakReference
    {
        return Coroutine::getCid() > 0 ? \WeakReference::create(Coroutine::getContext()) : parent::owner();
    }

    protected function waiter(): mixed
    {
        $coroutine = Coroutine::getCid();
        if ($coroutine <= 0) {
            return null;
        }
        if ($this->watch->generation !== $this->client->generation()) {
            $this->watch->begin($this->client->generation());
        }
        return $coroutine;
    }

    protected function suspend(mixed $waiter): bool
    {
        return Coroutine::suspend();
    }

    protected function isAlone(): bool
    {
        return $this->watch->pending === 0;
    }

    protected function watch(): void
    {
        $this->watch->pending++;
        $this->watch->begun++;
    }

    protected function unwatch(): void
    {
        $this->watch->pending--;
    }
}
