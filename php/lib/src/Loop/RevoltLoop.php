<?php

declare(strict_types=1);

namespace Redlock\Loop;

use Revolt\EventLoop;

/** The loop of revolt/event-loop, and so of AMPHP. */
final class RevoltLoop implements Loop
{
    public function watch($stream, \Closure $ready): mixed
    {
        return EventLoop::onReadable($stream, $ready);
    }

    public function unwatch(mixed $watch): void
    {
        EventLoop::cancel($watch);
    }

    public function suspension(): Suspension
    {
        return new RevoltSuspension(EventLoop::getSuspension());
    }
}
