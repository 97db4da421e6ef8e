<?php

declare(strict_types=1);

namespace Redlock;

use Psr\Log\LoggerInterface;

/** @internal Events of a client as PSR-3 records. */
final class EventLog
{
    /** What somebody should look at; everything else is information. */
    private const WARNINGS = ['lost', 'at_risk', 'dropped', 'node_down', 'node_refused'];

    public function __construct(private readonly Native\Client $native, private readonly ?LoggerInterface $logger)
    {
    }

    public function write(): void
    {
        if ($this->logger === null) {
            return;
        }
        while (($line = $this->native->event()) !== null) {
            $event = \json_decode($line, true, flags: \JSON_INVALID_UTF8_SUBSTITUTE) ?? ['event' => 'unreadable', 'line' => $line];
            $level = \in_array($event['event'] ?? '', self::WARNINGS, true) ? 'warning' : 'info';
            $this->logger->log($level, 'redlock: {event} {resource}', $event + ['resource' => '']);
        }
    }

    /** @param array<string, mixed> $context */
    public function warn(string $message, array $context): void
    {
        $this->logger?->warning($message, $context);
    }
}
