<?php

declare(strict_types=1);

namespace Redlock\Driver;

use Redlock\Native;
use Swoole\Coroutine\Channel;

/** @internal A coroutine that waits for one operation. */
final class ChannelWaiter implements Waiter
{
    public readonly Channel $channel;

    public function __construct(private readonly Native\Lock $lock)
    {
        $this->channel = new Channel(1);
    }

    public function resume(): void
    {
        if ($this->channel->isEmpty() && $this->lock->status() !== \REDLOCK_PENDING) {
            $this->channel->push(true); /* never waits: there is room for one */
        }
    }
}
