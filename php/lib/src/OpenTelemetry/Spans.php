<?php

declare(strict_types=1);

namespace Redlock\OpenTelemetry;

use OpenTelemetry\API\Trace\Span;
use OpenTelemetry\API\Trace\SpanInterface;
use OpenTelemetry\API\Trace\SpanKind;
use OpenTelemetry\API\Trace\StatusCode;
use OpenTelemetry\API\Trace\TracerInterface;
use Redlock\EventLog;
use Redlock\Exception\BusyException;
use Redlock\Exception\LostException;
use Redlock\Exception\RedlockThrowable;

/** @internal Spans of one resource. A tracer that fails costs neither the lock nor its release. */
final class Spans
{
    /** @param array<string, mixed> $attributes of all of them */
    public function __construct(private readonly TracerInterface $tracer, private readonly array $attributes)
    {
    }

    /** @param array<string, mixed> $attributes null: it has none of that name */
    public function start(string $name, array $attributes = [], int $kind = SpanKind::KIND_CLIENT): SpanInterface
    {
        $given = \array_filter($attributes, static fn (mixed $value): bool => $value !== null);
        try {
            return $this->tracer->spanBuilder($name)->setSpanKind($kind)->setAttributes($this->attributes + $given)
                ->startSpan();
        } catch (\Throwable $failure) {
            self::complain($failure);
            return Span::getInvalid();
        }
    }

    public static function end(SpanInterface $span, ?int $atNs = null): void
    {
        try {
            $span->end($atNs);
        } catch (\Throwable $failure) {
            self::complain($failure);
        }
    }

    /** What an operation has thrown. That others hold the lock is a status and not an error. */
    public static function note(SpanInterface $span, \Throwable $failure, ?int $attempts = null): void
    {
        $attempts === null || $span->setAttribute('redlock.attempts', $attempts);
        if ($failure instanceof RedlockThrowable) {
            $span->setAttribute('redlock.status', \redlock_status_name($failure->status()));
        }
        if ($failure instanceof LostException) {
            $span->setAttribute('redlock.loss', $failure->reason);
        }
        $failure instanceof BusyException || self::fail($span, $failure);
    }

    public static function fail(SpanInterface $span, \Throwable $failure): void
    {
        $span->recordException($failure);
        $span->setStatus(StatusCode::STATUS_ERROR, $failure->getMessage());
    }

    private static function complain(\Throwable $failure): void
    {
        EventLog::toPhpsLog("a tracer failed: $failure");
    }
}
