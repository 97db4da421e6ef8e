<?php

declare(strict_types=1);

namespace Redlock\Driver;

use Redlock\Loop\Loop;
use Redlock\Native;

/** Suspends the Fiber; the loop watches one descriptor per client, only while something is pending. */
final class FiberDriver implements Driver
{
    private LoopWatch $watch;
    private int $pid = 0;

    public function __construct(private readonly Native\Client $client, private readonly Loop $loop)
    {
    }

    public function run(Native\Client $client, Native\Lock $lock, int $operation, int $arg): int
    {
        if ($this->pid !== \getmypid()) { /* a child's client has another epoll behind the same number */
            $this->watch = new LoopWatch($this->client, $this->loop);
            $this->pid = \getmypid();
        }
        $watch = $this->watch;
        $suspension = $this->loop->suspension();
        $tag = Tags::add($suspension);
        $atOnce = $watch->begin();
        $releases = $operation === \REDLOCK_RELEASE;
        try {
            $held = $releases ? $lock->state() : 0;
            $status = $lock->start($operation | $atOnce, $arg, $tag);
            if ($status !== \REDLOCK_OK) {
                return $status;
            }
            do {
                $suspension->suspend();
            } while (($status = $lock->status()) === \REDLOCK_PENDING);
            return $status;
        } catch (\FiberError $closing) {
            /* the Fiber is being destroyed, so it can not wait; what a release sends goes on without it */
            if (!$releases) {
                throw $closing;
            }
            $client->process();
            $lock->cancel();
            return $held === \REDLOCK_STATE_LOST ? \REDLOCK_LOST : \REDLOCK_OK;
        } finally {
            Tags::remove($tag);
            $watch->end();
        }
    }
}
