<?php

declare(strict_types=1);

namespace Redlock;

use Psr\Log\LoggerInterface;

/** @internal Events of a client as PSR-3 records. */
final class EventLog
{
    /** What nobody has to look at. */
    private const INFORMATION = ['node_up'];

    public function __construct(private readonly Native\Client $native, private readonly LoggerInterface $logger)
    {
    }

    public function write(): void
    {
        while (($line = $this->native->event()) !== null) {
            $event = \json_decode($line, true, flags: \JSON_INVALID_UTF8_SUBSTITUTE)
                ?? ['event' => 'unreadable', 'line' => $line];
            $level = \in_array($event['event'], self::INFORMATION, true) ? 'info' : 'warning';
            $names = \array_intersect(['event', 'resource', 'node', 'detail'], \array_keys($event));
            $words = \array_map(static fn (string $name): string => "{{$name}}", $names);
            $this->logger->log($level, 'redlock: ' . \implode(' ', $words), $event);
        }
    }

    /** @param array<string, mixed> $context */
    public function warn(string $message, array $context): void
    {
        $this->logger->warning($message, $context);
    }
}
