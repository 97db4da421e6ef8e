<?php

declare(strict_types=1);

namespace Redlock\OpenTelemetry;

use OpenTelemetry\API\Trace\SpanInterface;
use OpenTelemetry\API\Trace\SpanKind;
use Redlock\Driver\AroundDriver;
use Redlock\Driver\Driver;
use Redlock\Exception\LostException;
use Redlock\Hold;
use Redlock\Native;
use Redlock\Testing\Handle;

/** @internal Operations of one lock in their spans. */
final class TracedDriver extends AroundDriver
{
    private const NAMES = [\REDLOCK_ACQUIRE => 'redlock.acquire', \REDLOCK_EXTEND => 'redlock.extend',
        \REDLOCK_EXPIRE => 'redlock.expire', \REDLOCK_RELEASE => 'redlock.release'];

    /** @var \WeakMap<object, BodySpan> of bodies that have ended, until their locks are released */
    private \WeakMap $bodySpans;

    public function __construct(Driver $driver, private readonly Spans $spans)
    {
        parent::__construct($driver);
        $this->bodySpans = new \WeakMap();
    }

    public function run(Native\Lock|Handle $lock, int $operation, int $arg): int
    {
        $name = self::NAMES[$operation] ?? null;
        if ($name === null) {
            return $this->driver->run($lock, $operation, $arg);
        }
        $attempts = $operation === \REDLOCK_RELEASE ? null : $lock->attempts(...);
        $span = $this->spans->start($name, self::asked($lock, $operation, $arg));
        try {
            $status = $this->driver->run($lock, $operation, $arg);
            $this->tell($span, $lock, $operation, $status);
            return $status;
        } catch (\Throwable $failure) {
            Spans::note($span, $failure, $attempts === null ? null : $attempts());
            throw $failure;
        } finally {
            Spans::end($span);
        }
    }

    public function body(Hold $hold, Native\Lock|Handle $lock, callable $body): mixed
    {
        $span = new BodySpan($this->spans->start('redlock.hold', ['redlock.ttl_ms' => (int) $lock->get('ttl_ms'),
            'redlock.fence' => $lock->fence() ?: null], SpanKind::KIND_INTERNAL));
        $failed = null;
        try {
            return parent::body($hold, $lock, $body);
        } catch (\Throwable $failure) {
            throw $failed = $failure;
        } finally {
            $span->leave($failed);
            $hold->isLost() && $span->lose($hold);
            ($this->bodySpans[$lock] ?? null)?->end(); /* an inner one, which has released the lock before its end */
            $lock->state() === \REDLOCK_STATE_FREE ? $span->end() : $this->bodySpans[$lock] = $span;
        }
    }

    /** @return array<string, mixed> */
    private static function asked(Native\Lock|Handle $lock, int $operation, int $arg): array
    {
        if ($operation === \REDLOCK_RELEASE) {
            return [];
        }
        $ttlMs = (int) $lock->get('ttl_ms');
        if ($operation !== \REDLOCK_ACQUIRE) {
            return ['redlock.ttl_ms' => $arg ?: $ttlMs];
        }
        $waitMs = $arg < -1 ? (int) $lock->get('wait_ms') : $arg;
        return ['redlock.ttl_ms' => $ttlMs, 'redlock.wait_ms' => $waitMs < 0 ? null : $waitMs];
    }

    private function tell(SpanInterface $span, Native\Lock|Handle $lock, int $operation, int $status): void
    {
        $isAcquired = $operation === \REDLOCK_ACQUIRE;
        $isReleased = $operation === \REDLOCK_RELEASE;
        $span->setAttributes(\array_filter([
            'redlock.status' => \redlock_status_name($status),
            'redlock.attempts' => $isAcquired ? $lock->attempts() : null,
            'redlock.fence' => $isAcquired && $status === \REDLOCK_OK ? ($lock->fence() ?: null) : null,
            'redlock.remaining_ms' => !$isAcquired && !$isReleased && $status === \REDLOCK_OK
                ? $lock->validityMs() : null,
        ], static fn (mixed $value): bool => $value !== null));
        $failure = self::failure($lock, $status);
        $failure === null || Spans::note($span, $failure, $isReleased ? null : $lock->attempts());
        if ($isReleased && isset($this->bodySpans[$lock])) {
            $failure instanceof LostException && $this->bodySpans[$lock]->lost($failure);
            $this->bodySpans[$lock]->end();
            unset($this->bodySpans[$lock]);
        }
    }

    private static function failure(Native\Lock|Handle $lock, int $status): ?\Throwable
    {
        try {
            \in_array($status, [\REDLOCK_OK, \REDLOCK_CANCELLED], true) || $lock->fail($status);
        } catch (\Throwable $failure) {
            return $failure;
        }
        return null;
    }
}
