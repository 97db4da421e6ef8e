<?php

declare(strict_types=1);

namespace Redlock\OpenTelemetry;

use OpenTelemetry\API\Trace\SpanInterface;
use OpenTelemetry\API\Trace\SpanKind;
use Redlock\Exception\LostException;
use Redlock\LockInterface;

/** A lock of a TracedClient, which makes it. */
final class TracedLock implements LockInterface
{
    /** @internal */
    public function __construct(
        private readonly LockInterface $lock,
        private readonly Spans $spans,
        private int $ttlMs,
        private int $waitMs,
    ) {
    }

    public function acquire(?int $waitMs = null): void
    {
        $this->traced($this->acquiring($waitMs), function (SpanInterface $span) use ($waitMs): void {
            $this->lock->acquire($waitMs);
            $this->acquired($span);
        });
    }

    public function tryAcquire(?int $waitMs = 0): bool
    {
        return $this->traced($this->acquiring($waitMs), function (SpanInterface $span) use ($waitMs): bool {
            $isAcquired = $this->lock->tryAcquire($waitMs);
            $isAcquired ? $this->acquired($span) : $this->tell($span, 'BUSY');
            return $isAcquired;
        });
    }

    public function extend(?int $ttlMs = null): void
    {
        $this->setLease('redlock.extend', $ttlMs, $this->lock->extend(...));
    }

    public function expire(?int $ttlMs = null): void
    {
        $this->setLease('redlock.expire', $ttlMs, $this->lock->expire(...));
    }

    public function release(): void
    {
        $this->traced($this->spans->start('redlock.release'), function (SpanInterface $span): void {
            $this->lock->release();
            $span->setAttribute('redlock.status', 'OK');
        }, isRelease: true);
    }

    public function run(callable $body, ?int $waitMs = null): mixed
    {
        [$span, $hold, $failed] = [$this->acquiring($waitMs), null, null];
        try {
            $result = $this->lock->run(function () use ($body, &$span, &$hold, &$failed): mixed {
                $this->acquired($span);
                Spans::end($span);
                $hold = $this->hold();
                try {
                    return $body($this);
                } catch (\Throwable $failure) {
                    throw $failed = $failure;
                } finally {
                    $span = $this->leave($hold, $failed);
                }
            }, $waitMs);
            $span?->setAttribute('redlock.status', 'OK');
            return $result;
        } catch (\Throwable $failure) {
            $isNew = $failure !== $failed && $span !== null;
            $isNew && Spans::note($span, $failure, $hold === null ? $this->lock->attempts() : null);
            $failure instanceof LostException && $hold?->lose($failure->getMessage(), $failure->reason);
            throw $failure;
        } finally {
            $span === null || Spans::end($span);
            $hold?->end();
        }
    }

    public function cancel(): void
    {
        $this->lock->cancel();
    }

    public function resource(): string
    {
        return $this->lock->resource();
    }

    public function remainingMs(): int
    {
        return $this->lock->remainingMs();
    }

    public function isHeld(): bool
    {
        return $this->lock->isHeld();
    }

    public function isLost(): bool
    {
        return $this->lock->isLost();
    }

    public function isRenewed(): bool
    {
        return $this->lock->isRenewed();
    }

    public function set(string $option, bool|int|float|string $value): void
    {
        $this->lock->set($option, $value);
        match ($option) {
            'ttl_ms' => $this->ttlMs = (int) $value,
            'wait_ms' => $this->waitMs = (int) $value,
            default => null,
        };
    }

    public function fence(): ?int
    {
        return $this->lock->fence();
    }

    public function slot(): ?int
    {
        return $this->lock->slot();
    }

    public function attempts(): int
    {
        return $this->lock->attempts();
    }

    public function token(): string
    {
        return $this->lock->token();
    }

    public function votes(): array
    {
        return $this->lock->votes();
    }

    public function message(): string
    {
        return $this->lock->message();
    }

    public function detach(): string
    {
        return $this->lock->detach();
    }

    /**
     * Runs an operation in its span.
     *
     * @template T
     * @param \Closure(SpanInterface): T $operation
     * @return T
     */
    private function traced(SpanInterface $span, \Closure $operation, bool $isRelease = false): mixed
    {
        try {
            return $operation($span);
        } catch (\Throwable $failure) {
            Spans::note($span, $failure, $isRelease ? null : $this->lock->attempts());
            throw $failure;
        } finally {
            Spans::end($span);
        }
    }

    private function acquiring(?int $waitMs): SpanInterface
    {
        $waitMs ??= $this->waitMs;
        return $this->spans->start('redlock.acquire',
            ['redlock.ttl_ms' => $this->ttlMs, 'redlock.wait_ms' => $waitMs < 0 ? null : $waitMs]);
    }

    private function acquired(SpanInterface $span): void
    {
        $this->tell($span, 'OK');
        $this->lock->fence() === null || $span->setAttribute('redlock.fence', $this->lock->fence());
    }

    private function tell(SpanInterface $span, string $status): void
    {
        $span->setAttributes(['redlock.status' => $status, 'redlock.attempts' => $this->lock->attempts()]);
    }

    private function hold(): Hold
    {
        return new Hold($this->spans->start('redlock.hold',
            ['redlock.ttl_ms' => $this->ttlMs, 'redlock.fence' => $this->lock->fence()], SpanKind::KIND_INTERNAL));
    }

    /** The span of the release that follows, if one does. */
    private function leave(Hold $hold, ?\Throwable $failure): ?SpanInterface
    {
        $hold->leave($failure);
        $isLost = $this->lock->isLost();
        $failure !== null && $isLost && $hold->lose($this->lock->message(), null);
        return $isLost || $this->lock->isHeld() ? $this->spans->start('redlock.release') : null;
    }

    private function setLease(string $name, ?int $ttlMs, \Closure $operation): void
    {
        $span = $this->spans->start($name, ['redlock.ttl_ms' => $ttlMs ?? $this->ttlMs]);
        $this->traced($span, function (SpanInterface $span) use ($ttlMs, $operation): void {
            $operation($ttlMs);
            $span->setAttributes(['redlock.status' => 'OK', 'redlock.remaining_ms' => $this->lock->remainingMs()]);
        });
    }
}
