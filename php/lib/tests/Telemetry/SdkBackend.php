<?php

declare(strict_types=1);

namespace Redlock\Tests\Telemetry;

use OpenTelemetry\API\Trace\TracerInterface;
use OpenTelemetry\API\Trace\TracerProviderInterface;
use OpenTelemetry\SDK\Metrics\MeterProvider;
use OpenTelemetry\SDK\Metrics\MetricExporter\InMemoryExporter as Metrics;
use OpenTelemetry\SDK\Metrics\MetricReader\ExportingReader;
use OpenTelemetry\SDK\Trace\SpanDataInterface;
use OpenTelemetry\SDK\Trace\SpanExporter\InMemoryExporter;
use OpenTelemetry\SDK\Trace\SpanProcessor\SimpleSpanProcessor;
use OpenTelemetry\SDK\Trace\TracerProvider;

final class SdkBackend extends Backend
{
    private readonly InMemoryExporter $exporter;
    private readonly Metrics $exported;
    private readonly ExportingReader $reader;

    public function __construct()
    {
        $this->tracers = new TracerProvider(new SimpleSpanProcessor($this->exporter = new InMemoryExporter()));
        $this->reader = new ExportingReader($this->exported = new Metrics());
        $this->meters = MeterProvider::builder()->addReader($this->reader)->build();
    }

    public function spans(): array
    {
        $spans = $this->exporter->getSpans();
        \usort($spans, static fn (SpanDataInterface $a, SpanDataInterface $b): int =>
            $a->getStartEpochNanos() <=> $b->getStartEpochNanos());
        $names = [];
        foreach ($spans as $span) {
            $names[$span->getContext()->getSpanId()] = $span->getName();
        }
        return \array_map(static fn (SpanDataInterface $span): array => [
            'name' => $span->getName(),
            'parent' => $names[$span->getParentSpanId()] ?? null,
            'kind' => $span->getKind(),
            'attributes' => $span->getAttributes()->toArray(),
            'status' => $span->getStatus()->getCode(),
            'description' => $span->getStatus()->getDescription(),
            'events' => \array_map(static fn ($event): array => [$event->getName(), $event->getAttributes()->toArray()],
                $span->getEvents()),
            'start' => $span->getStartEpochNanos(),
            'end' => $span->getEndEpochNanos(),
        ], $spans);
    }

    public function metrics(): array
    {
        $this->reader->collect();
        $values = [];
        foreach ($this->exported->collect(true) as $metric) {
            foreach ($metric->data->dataPoints as $point) {
                $values[$metric->name][] = [$point->attributes->toArray(), $point->value];
            }
        }
        return $values;
    }

    public function breakTracer(): void
    {
        $this->tracers = new class implements TracerProviderInterface {
            public function getTracer(
                string $name,
                ?string $version = null,
                ?string $schemaUrl = null,
                iterable $attributes = [],
            ): TracerInterface {
                return new class implements TracerInterface {
                    public function spanBuilder(string $spanName): \OpenTelemetry\API\Trace\SpanBuilderInterface
                    {
                        throw new \LogicException('no spans today');
                    }

                    public function isEnabled(): bool
                    {
                        return true;
                    }
                };
            }
        };
    }
}
