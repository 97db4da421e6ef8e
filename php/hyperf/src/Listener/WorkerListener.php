<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Listener;

use Hyperf\Event\Contract\ListenerInterface;
use Hyperf\Framework\Event\OnWorkerStop;
use Redlock\Hyperf\Locks;

/**
 * Clients close at OnWorkerStop, which comes last. At OnWorkerExit (a reload, max_request, SIGTERM) coroutines still
 * wait for locks, hold some, release others and are about to take the next.
 */
final class WorkerListener implements ListenerInterface
{
    public function __construct(private readonly Locks $locks)
    {
    }

    public function listen(): array
    {
        return [OnWorkerStop::class];
    }

    public function process(object $event): void
    {
        $this->locks->close();
    }
}
