<?php

declare(strict_types=1);

namespace Redlock\Driver;

use Redlock\Native;
use Swoole\Coroutine;

/** Suspends the coroutine and never the worker. */
final class SwooleDriver implements Driver
{
    private static ?self $instance = null;

    /** @var array<int, SwooleDispatcher> by the id of the native client */
    private array $dispatchers = [];
    private int $pid = 0;

    public static function instance(): self
    {
        return self::$instance ??= new self();
    }

    public function run(Native\Client $client, Native\Lock $lock, int $operation, int $arg): int
    {
        if ($operation === \REDLOCK_RELEASE && Coroutine::isCanceled()) {
            return Leave::release($lock); /* a cancelled coroutine is to end, not to wait */
        }
        $state = $operation === \REDLOCK_RELEASE ? $lock->state() : 0;
        $waiter = new ChannelWaiter($lock);
        $tag = Tags::add($waiter);
        $dispatcher = $this->dispatcher($client);
        $atOnce = $dispatcher->begin();
        try {
            $status = $lock->start($operation | $atOnce, $arg, $tag);
            if ($status !== \REDLOCK_OK) {
                return $status;
            }
            if ($waiter->channel->pop() === true) {
                return $lock->status();
            }
        } finally {
            Tags::remove($tag);
            $dispatcher->end();
        }
        $status = Leave::cancelled($lock, $operation);
        if ($operation === \REDLOCK_RELEASE) { /* it goes on inside the client */
            return $state === \REDLOCK_STATE_LOST ? \REDLOCK_LOST : \REDLOCK_OK;
        }
        return $status;
    }

    private function dispatcher(Native\Client $client): SwooleDispatcher
    {
        if ($this->pid !== \getmypid()) {
            $this->pid = \getmypid();
            $this->dispatchers = []; /* coroutines do not survive a fork */
        }
        return $this->dispatchers[$client->id()] ??= new SwooleDispatcher($client);
    }
}
