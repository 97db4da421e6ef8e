<?php

declare(strict_types=1);

namespace Redlock\Tests;

use Redlock\Loop\Suspension;

/** One Fiber of a StreamSelectLoop. */
final class FiberSuspension implements Suspension
{
    /** @var \WeakReference<\Fiber> who drops a Fiber ends its wait: the loop does not keep it */
    private readonly \WeakReference $fiber;
    private bool $waiting = false;

    public function __construct(\Fiber $fiber)
    {
        $this->fiber = \WeakReference::create($fiber);
    }

    public function suspend(): void
    {
        $this->waiting = true;
        try {
            \Fiber::suspend();
        } finally {
            $this->waiting = false;
        }
    }

    public function resume(): void
    {
        if ($this->waiting) { /* else the Fiber is suspended by somebody else */
            $this->fiber->get()?->resume();
        }
    }
}
