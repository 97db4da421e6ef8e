<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Listener;

use Hyperf\Event\Contract\ListenerInterface;
use Hyperf\Framework\Event\OnWorkerExit;
use Hyperf\Framework\Event\OnWorkerStop;
use Redlock\Hyperf\Locks;

/** OnWorkerExit comes again and again while coroutines run, and not at all when none does; OnWorkerStop comes last. */
final class WorkerListener implements ListenerInterface
{
    public function __construct(private readonly Locks $locks)
    {
    }

    public function listen(): array
    {
        return [OnWorkerExit::class, OnWorkerStop::class];
    }

    public function process(object $event): void
    {
        $event instanceof OnWorkerStop ? $this->locks->close() : $this->locks->leave();
    }
}
