<?php

declare(strict_types=1);

/*
 * What the library needs of OpenTelemetry's API, for tests without it: spans and observations are kept. Parameters are
 * those of open-telemetry/api 1. A span is its own builder and scope; methods that the library does not call are
 * missing.
 */

namespace OpenTelemetry\Context {
    interface ScopeInterface
    {
        public function detach(): int;
    }
}

namespace OpenTelemetry\API\Common\Time {
    final class Clock
    {
        public static function getDefault(): self
        {
            return new self();
        }

        public function now(): int
        {
            return \hrtime(true);
        }
    }
}

namespace OpenTelemetry\API\Trace {
    use OpenTelemetry\API\Common\Time\Clock;
    use OpenTelemetry\Context\ScopeInterface;

    interface SpanKind
    {
        public const KIND_INTERNAL = 0;
        public const KIND_CLIENT = 1;
    }

    interface StatusCode
    {
        public const STATUS_UNSET = 'Unset';
        public const STATUS_ERROR = 'Error';
    }

    interface SpanInterface
    {
    }

    interface TracerInterface
    {
        public function spanBuilder(string $spanName): Span;

        public function isEnabled(): bool;
    }

    interface TracerProviderInterface
    {
        public function getTracer(
            string $name,
            ?string $version = null,
            ?string $schemaUrl = null,
            iterable $attributes = [],
        ): TracerInterface;
    }

    /** Its own builder, and the scope in which it is the current one. */
    final class Span implements SpanInterface, ScopeInterface
    {
        /** @var list<Span> the current one and those around it */
        public static array $current = [];

        public int $kind = SpanKind::KIND_INTERNAL;
        public array $attributes = [];
        public array $events = [];
        public string $status = StatusCode::STATUS_UNSET;
        public ?string $description = null;
        public ?Span $parent = null;
        public int $startNs = 0;
        public ?int $endNs = null;

        public function __construct(public readonly string $name, private readonly ?\Closure $ended = null)
        {
        }

        public static function getInvalid(): self
        {
            return new self('invalid');
        }

        public function setSpanKind(int $spanKind): self
        {
            $this->kind = $spanKind;
            return $this;
        }

        public function startSpan(): self
        {
            $this->parent = \end(self::$current) ?: null;
            $this->startNs = Clock::getDefault()->now();
            return $this;
        }

        public function setAttribute(string $key, bool|int|float|string|array|null $value): self
        {
            return $this->setAttributes([$key => $value]);
        }

        public function setAttributes(iterable $attributes): self
        {
            $this->endNs === null && $this->attributes = [...$this->attributes, ...$attributes];
            return $this;
        }

        public function addEvent(string $name, iterable $attributes = [], ?int $timestamp = null): self
        {
            $this->endNs === null && $this->events[] = [$name, $attributes];
            return $this;
        }

        public function recordException(\Throwable $exception, iterable $attributes = []): self
        {
            return $this->addEvent('exception', ['exception.type' => $exception::class]);
        }

        public function setStatus(string $code, ?string $description = null): self
        {
            $this->endNs === null && [$this->status, $this->description] = [$code, $description];
            return $this;
        }

        public function end(?int $endEpochNanos = null): void
        {
            $isFirst = $this->endNs === null;
            $this->endNs ??= $endEpochNanos ?? Clock::getDefault()->now();
            $isFirst && $this->ended !== null && ($this->ended)($this);
        }

        public function activate(): ScopeInterface
        {
            self::$current[] = $this;
            return $this;
        }

        public function detach(): int
        {
            return \array_pop(self::$current) === $this ? 0 : 1;
        }
    }
}

namespace OpenTelemetry\API\Metrics {
    interface ObserverInterface
    {
        public function observe(float|int $amount, iterable $attributes = []): void;
    }

    interface MeterProviderInterface
    {
        public function getMeter(
            string $name,
            ?string $version = null,
            ?string $schemaUrl = null,
            iterable $attributes = [],
        ): MeterInterface;
    }

    interface MeterInterface
    {
        public function createObservableGauge(
            string $name,
            ?string $unit = null,
            ?string $description = null,
            array|callable $advisory = [],
            callable ...$callbacks,
        ): object;

        public function createObservableCounter(
            string $name,
            ?string $unit = null,
            ?string $description = null,
            array|callable $advisory = [],
            callable ...$callbacks,
        ): object;

        public function batchObserve(callable $callback, object $instrument, object ...$instruments): object;
    }
}

namespace OpenTelemetry\API {
    final class Globals
    {
        public static ?Trace\TracerProviderInterface $tracers = null;
        public static ?Metrics\MeterProviderInterface $meters = null;

        public static function tracerProvider(): Trace\TracerProviderInterface
        {
            return self::$tracers;
        }

        public static function meterProvider(): Metrics\MeterProviderInterface
        {
            return self::$meters;
        }
    }
}
