<?php

declare(strict_types=1);

namespace Redlock\Driver;

use Redlock\EventLog;
use Redlock\Loop\Loop;
use Redlock\Loop\RevoltLoop;
use Redlock\Native;
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

    /** So long nobody is told why a call waits. */
    private const SUSPICIOUS_SLICES = 1000 / self::SLICE_MS;

    private ?FiberDriver $fibers;

    public function __construct(Native\Client $client, ?EventLog $events, ?Loop $loop)
    {
        parent::__construct($client, $events);
        $this->fibers = $loop === null ? null : new FiberDriver($client, $events, $loop);
    }

    public function run(Native\Lock $lock, int $operation, int $arg): int
    {
        if (\Fiber::getCurrent() !== null && ($this->fibers !== null || self::isRevoltRunning())) {
            $this->fibers ??= new FiberDriver($this->client, $this->events, new RevoltLoop());
            return $this->fibers->run($lock, $operation, $arg);
        }
        try {
            $status = $lock->run($operation, $arg, self::SLICE_MS);
            for ($slices = 1; $status === \REDLOCK_PENDING; $slices++) {
                $this->events?->write(); /* they may say why it waits */
                if ($slices === self::SUSPICIOUS_SLICES && $operation === \REDLOCK_ACQUIRE) {
                    $this->sayWhy($lock);
                }
                $status = $lock->wait(self::SLICE_MS);
            }
            $this->events?->write();
            return $status;
        } catch (\Throwable $interruption) { /* of a signal handler, or of the logger */
            Leave::cancelled($lock, $operation);
            throw $interruption;
        }
    }

    public function inFlight(): int
    {
        return $this->bodies + ($this->fibers?->inFlight() ?? 0);
    }

    /** What an operator can do about a long wait; a logger hears of quarantines by itself. */
    private function sayWhy(Native\Lock $lock): void
    {
        $holder = \PHP_ZTS ? null : \json_decode($lock->heldBy(), true); /* threads of PHP have one process id */
        if (($holder['pid'] ?? 0) === \getmypid() && $holder['host'] === \gethostname()) {
            $this->warn($lock, 'waits for a lock that this process itself holds, in another Lock object: only a signal '
                . 'handler, or the end of the lease, can free it');
        } elseif (!$this->events?->hasLogger()) {
            $nodes = \json_decode($this->client->describe(), true, flags: \JSON_INVALID_UTF8_SUBSTITUTE)['nodes'] ?? [];
            $quarantined = \array_filter($nodes, static fn (array $node): bool => $node['quarantined'] ?? false);
            $words = \array_map(static fn (array $node): string => "$node[node] $node[why]", $quarantined);
            $words === [] || $this->warn($lock, 'waits for nodes that do not vote yet: ' . \implode('; ', $words));
        }
    }

    private function warn(Native\Lock $lock, string $words): void
    {
        $this->events?->hasLogger()
            ? $this->events->warn("redlock: {resource} $words", ['resource' => $lock->resource()])
            : \error_log('redlock: ' . \addcslashes($lock->resource(), "\0..\37\177..\377") . " $words");
    }

    private static function isRevoltRunning(): bool
    {
        return \class_exists(EventLoop::class, false) && EventLoop::getDriver()->isRunning();
    }
}
