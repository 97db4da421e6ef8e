<?php

declare(strict_types=1);

namespace Redlock\Driver;

use Redlock\EventLog;
use Redlock\Loop\RevoltLoop;
use Redlock\Native;
use Revolt\EventLoop;

/**
 * Waits in the call itself, in slices: between two of them PHP runs its signal handlers, and events are logged. In a
 * Fiber of Revolt, and so of AMPHP, the Fiber waits and not the loop. Other ways to wait extend this one, as calls from
 * outside of them block.
 *
 * @internal
 */
class BlockingDriver
{
    private const SLICE_MS = 25;

    /** Calls of run() whose bodies have begun, or are about to. */
    public int $bodies = 0;

    public function __construct(
        protected readonly Native\Client $client,
        public readonly ?EventLog $events,
        private ?BlockingDriver $fibers = null,
    ) {
    }

    /** Runs one operation to its end: its status. If anything ends it before, nothing stays behind at the nodes. */
    public function run(Native\Lock $lock, int $operation, int $arg): int
    {
        if (\Fiber::getCurrent() !== null && ($this->fibers !== null || $this->isRevoltRunning())) {
            $this->fibers ??= new FiberDriver($this->client, $this->events, new RevoltLoop());
            return $this->fibers->run($lock, $operation, $arg);
        }
        try {
            $status = $lock->run($operation, $arg, self::SLICE_MS);
            while ($status === \REDLOCK_PENDING) {
                $this->events?->write(); /* they may say why it waits */
                $status = $lock->wait(self::SLICE_MS);
            }
            $this->events?->write();
            return $status;
        } catch (\Throwable $interruption) { /* of a signal handler, or of the logger */
            Leave::cancelled($lock, $operation);
            throw $interruption;
        }
    }

    /** How many calls are under way in Fibers and coroutines. */
    public function inFlight(): int
    {
        return $this->bodies + ($this->fibers?->inFlight() ?? 0);
    }

    private function isRevoltRunning(): bool
    {
        return \class_exists(EventLoop::class, false) && EventLoop::getDriver()->isRunning();
    }

    /** For those who wait outside of run(): a logger that fails leaves no lock behind. */
    final protected function writeEvents(Native\Lock $lock, int $operation): void
    {
        try {
            $this->events?->write();
        } catch (\Throwable $failure) {
            Leave::cancelled($lock, $operation);
            throw $failure;
        }
    }
}
