<?php

declare(strict_types=1);

namespace Redlock\Driver;

use Redlock\EventLog;
use Redlock\Hold;
use Redlock\Loop\Loop;
use Redlock\Loop\RevoltLoop;
use Redlock\Native;
use Redlock\Testing\Handle;
use Revolt\EventLoop;

/**
 * Waits in the call itself, in slices: between two of them PHP runs its signal handlers, and events are logged. In a
 * Fiber with a loop, which may be Revolt's and so AMPHP's, the Fiber waits.
 *
 * @internal
 */
final class BlockingDriver extends Driver
{
    private const SLICE_MS = 25;

    /** When nodes have answered: a quarantine of a majority is reported then, anything else after SUSPICIOUS_SLICES. */
    private const EARLY_SLICES = 100 / self::SLICE_MS;
    private const SUSPICIOUS_SLICES = 1000 / self::SLICE_MS;

    private ?FiberDriver $fibers;

    public function __construct(Native\Client $client, ?EventLog $events, private readonly ?Loop $loop)
    {
        parent::__construct($client, $events);
        $this->fibers = $loop === null ? null : new FiberDriver($client, $events, $loop);
    }

    public function run(Native\Lock|Handle $lock, int $operation, int $arg): int
    {
        if (\Fiber::getCurrent() !== null && ($fibers = $this->fibers()) !== null) {
            return $fibers->run($lock, $operation, $arg);
        }
        try {
            $status = $lock->run($operation, $arg, self::SLICE_MS);
            if ($status === \REDLOCK_PENDING) {
                $status = $this->goOn($lock, $operation);
            }
            $this->events?->write();
            return $status;
        } catch (\Throwable $interruption) { /* of a signal handler, or of the logger */
            Leave::cancelled($lock, $operation);
            throw $interruption;
        }
    }

    private function goOn(Native\Lock $lock, int $operation): int
    {
        $told = $operation !== \REDLOCK_ACQUIRE;
        for ($slices = 1, $status = \REDLOCK_PENDING; $status === \REDLOCK_PENDING; $slices++) {
            $this->events?->write(); /* they may say why it waits */
            $told = $told || match ($slices) {
                self::EARLY_SLICES => $this->tellQuarantine($lock, true),
                self::SUSPICIOUS_SLICES => $this->tellOwnLock($lock) || $this->tellQuarantine($lock, false),
                default => false,
            };
            $status = $lock->wait(self::SLICE_MS);
        }
        return $status;
    }

    public function inFlight(): int
    {
        return $this->bodies + ($this->fibers?->inFlight() ?? 0);
    }

    private function tellOwnLock(Native\Lock $lock): bool
    {
        $canTell = \function_exists('getmypid') && \function_exists('gethostname'); /* some disable them */
        if (!$canTell || \PHP_ZTS || (int) $lock->get('permits') > 1) { /* threads of PHP have one process id */
            return false;
        }
        $asking = $this->handle($lock->resource(), []);
        $this->run($asking, \REDLOCK_WHO, Hold::HOLDER_LIMIT_MS);
        $holder = \json_decode($asking->heldBy(), true);
        $own = ($holder['pid'] ?? 0) === \getmypid() && $holder['host'] === \gethostname();
        $own && EventLog::warnOf($this->events, $lock->resource(), 'waits for a lock that this process itself holds, '
            . 'by another hold: only a signal handler, or the end of the lease, can free it');
        return $own;
    }

    /** A quarantine of a majority lasts, so it is reported at once. A logger gets quarantines as events. */
    private function tellQuarantine(Native\Lock $lock, bool $majority): bool
    {
        if ($this->events?->hasLogger()) {
            return false;
        }
        $nodes = \json_decode($this->client->describe(), true, flags: \JSON_INVALID_UTF8_SUBSTITUTE)['nodes'] ?? [];
        $quarantined = \array_filter($nodes, static fn (array $node): bool => $node['quarantined'] ?? false);
        if (\count($quarantined) <= ($majority ? \intdiv(\count($nodes), 2) : 0)) {
            return false;
        }
        EventLog::warnOf($this->events, $lock->resource(), "waits: {$lock->message()}");
        return true;
    }

    /** What a Fiber waits by: Revolt's loop, while it runs, without one of the client's. */
    private function fibers(): ?FiberDriver
    {
        if ($this->loop !== null) {
            return $this->fibers;
        }
        if (!\class_exists(EventLoop::class, false) || !EventLoop::getDriver()->isRunning()) {
            return null;
        }
        return $this->fibers ??= new FiberDriver($this->client, $this->events, new RevoltLoop());
    }
}
