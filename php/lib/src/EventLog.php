<?php

declare(strict_types=1);

namespace Redlock;

use Psr\EventDispatcher\EventDispatcherInterface;
use Psr\Log\LoggerInterface;

/** @internal Events of a client as PSR-3 records and as objects for a PSR-14 dispatcher. */
final class EventLog
{
    /** Events that need no attention. */
    private const INFORMATION = ['node_up'];

    private const OF_LOCKS = [
        'at_risk' => Event\AtRisk::class,
        'limit' => Event\LimitReached::class,
        'held_long' => Event\HeldLong::class,
    ];
    private const OF_NODES = [
        'node_up' => Event\NodeUp::class,
        'node_down' => Event\NodeDown::class,
        'node_silent' => Event\NodeSilent::class,
        'node_refused' => Event\NodeRefused::class,
        'node_restarted' => Event\NodeRestarted::class,
    ];

    private bool $isWriting = false;

    private function __construct(
        private readonly Native\Client $native,
        private readonly ?LoggerInterface $logger,
        public readonly ?EventDispatcherInterface $dispatcher,
    ) {
    }

    /** Null: nobody listens. */
    public static function of(
        Native\Client $native,
        ?LoggerInterface $logger,
        ?EventDispatcherInterface $dispatcher,
    ): ?self {
        return $logger === null && $dispatcher === null ? null : new self($native, $logger, $dispatcher);
    }

    public function write(): void
    {
        if ($this->isWriting) { /* a logger that takes a lock of this client itself */
            return;
        }
        $this->isWriting = true;
        try {
            while (($line = $this->native->event()) !== null) {
                $event = \json_decode($line, true, flags: \JSON_INVALID_UTF8_SUBSTITUTE)
                    ?? ['event' => 'unreadable', 'line' => $line];
                $this->logger === null || $this->log($event);
                $this->dispatcher === null || $this->tell(self::made($event));
            }
        } finally {
            $this->isWriting = false;
        }
    }

    public function hasLogger(): bool
    {
        return $this->logger !== null;
    }

    /** @param array<string, mixed> $context */
    public function warn(string $message, array $context): void
    {
        $this->logger?->warning($message, $context);
    }

    /** A warning about a lock: to the logger, or else to PHP's own log. */
    public static function warnOf(?self $events, string $resource, string $words): void
    {
        $events?->hasLogger()
            ? $events->warn('redlock: "{resource}" ' . $words, ['resource' => $resource])
            : self::toPhpsLog('"' . \addcslashes($resource, "\0..\37\177..\377") . "\" $words");
    }

    /** Some disable even that: a lock does not depend on it. */
    public static function toPhpsLog(string $words): void
    {
        \function_exists('error_log') && \error_log("redlock: $words");
    }

    /** A listener that fails changes nothing: what it hears of has happened. */
    public function tell(?object $event): void
    {
        try {
            $event === null || $this->dispatcher?->dispatch($event);
        } catch (\Throwable $failure) {
            $this->complain($event, $failure);
        }
    }

    private function complain(object $event, \Throwable $failure): void
    {
        $name = $event::class;
        try {
            $this->logger?->error("redlock: a listener of $name failed: {message}",
                ['message' => $failure->getMessage(), 'exception' => $failure]);
        } catch (\Throwable $another) {
            $failure = $another;
        }
        if ($this->logger === null || isset($another)) {
            self::toPhpsLog("a listener of $name failed: $failure");
        }
    }

    /** @param array<string, mixed> $event */
    private function log(array $event): void
    {
        $level = \in_array($event['event'], self::INFORMATION, true) ? 'info' : 'warning';
        $names = \array_intersect(['event', 'resource', 'node', 'detail'], \array_keys($event));
        $words = \array_map(static fn (string $name): string => "{{$name}}", $names);
        $this->logger->log($level, 'redlock: ' . \implode(' ', $words), $event);
    }

    /** @param array<string, mixed> $event */
    private static function made(array $event): ?object
    {
        [$name, $detail, $atMs] = [$event['event'], $event['detail'] ?? '', $event['at_ms'] ?? 0];
        $ofLock = self::OF_LOCKS[$name] ?? null;
        $ofNode = self::OF_NODES[$name] ?? null;
        return match (true) {
            $name === 'lost' => new Event\Lost($event['resource'], $event['reason'], $detail, $atMs),
            $name === 'dropped' => new Event\Dropped($event['count']),
            $name === 'warning' => new Event\Warning($event['node'] ?? null, $detail, $atMs),
            $ofLock !== null => new $ofLock($event['resource'], $detail, $atMs),
            $ofNode !== null => new $ofNode($event['node'], $detail, $atMs),
            default => null,
        };
    }
}
