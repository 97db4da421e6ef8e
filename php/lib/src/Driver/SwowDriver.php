<?php

declare(strict_types=1);

namespace Redlock\Driver;

use Swow\Coroutine;

/** @internal Suspends the coroutine of Swow; one more looks at the client's descriptor while something is pending. */
final class SwowDriver extends SuspendingDriver
{
    /** How often the watching coroutine checks whether any other still waits. */
    private const LOOK_AFTER_S = 1;

    private bool $looks = false;

    public function owner(): \WeakReference
    {
        return \WeakReference::create(Coroutine::getCurrent());
    }

    protected function waiter(): mixed
    {
        return Coroutine::getCurrent();
    }

    protected function suspend(mixed $waiter): bool
    {
        Coroutine::yield();
        return true;
    }

    protected function begin(): void
    {
        $this->looks = false;
        parent::begin();
    }

    protected function watch(): void
    {
        $this->looks || Coroutine::run($this->look(...));
    }

    protected function unwatch(): void
    {
    }

    private function look(): void
    {
        $this->looks = true;
        try {
            $stream = Waiters::open($this->client);
            for ($wake = Waiters::waker($this->client); \count($this->waiting) > 0; $wake()) {
                $read = [$stream];
                $write = $except = null;
                @\stream_select($read, $write, $except, self::LOOK_AFTER_S);
            }
        } finally {
            $this->looks = false;
        }
    }
}
