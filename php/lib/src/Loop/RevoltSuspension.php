<?php

declare(strict_types=1);

namespace Redlock\Loop;

use Revolt\EventLoop\Suspension as Inner;

/** @internal */
final class RevoltSuspension implements Suspension
{
    private bool $waiting = false;

    public function __construct(private readonly Inner $inner)
    {
    }

    public function suspend(): void
    {
        $this->waiting = true;
        try {
            $this->inner->suspend();
        } finally {
            $this->waiting = false;
        }
    }

    public function resume(): void
    {
        if ($this->waiting) {
            $this->waiting = false; /* the Fiber continues in a later turn: Revolt refuses a second resume before */
            $this->inner->resume();
        }
    }
}
