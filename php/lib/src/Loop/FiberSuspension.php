<?php

declare(strict_types=1);

namespace Redlock\Loop;

/** @internal One Fiber of a StreamSelectLoop. */
final class FiberSuspension implements Suspension
{
    /** @var \WeakReference<\Fiber> who drops a Fiber ends its wait: the loop does not keep it */
    private readonly \WeakReference $fiber;
    private bool $waiting = false;
    private bool $queued = false;

    /** @param \SplQueue<self> $ready */
    public function __construct(private readonly \SplQueue $ready)
    {
        $this->fiber = \WeakReference::create(\Fiber::getCurrent()
            ?? throw new \LogicException('only a Fiber can be suspended'));
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
        if ($this->waiting && !$this->queued) {
            $this->queued = true;
            $this->ready->enqueue($this);
        }
    }

    /** Called by the loop in its turn. */
    public function continue(): void
    {
        $this->queued = false;
        if ($this->waiting) { /* else the Fiber is suspended by somebody else */
            $this->fiber->get()?->resume();
        }
    }
}
