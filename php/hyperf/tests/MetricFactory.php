<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests;

use Hyperf\Metric\Contract\CounterInterface;
use Hyperf\Metric\Contract\GaugeInterface;
use Hyperf\Metric\Contract\HistogramInterface;
use Hyperf\Metric\Contract\MetricFactoryInterface;

/** Adds counters up and keeps gauges, as Prometheus does. */
final class MetricFactory implements MetricFactoryInterface
{
    /** @var array<string, float> by name and labels */
    public array $values = [];
    /** @var array<string, string> "counter" or "gauge" by name */
    public array $kinds = [];

    public function makeCounter(string $name, ?array $labelNames = []): CounterInterface
    {
        return $this->instrument('counter', $name, $labelNames);
    }

    public function makeGauge(string $name, ?array $labelNames = []): GaugeInterface
    {
        return $this->instrument('gauge', $name, $labelNames);
    }

    public function makeHistogram(string $name, ?array $labelNames = []): HistogramInterface
    {
        throw new \LogicException('there is nothing that a histogram could be given');
    }

    public function handle(): void
    {
    }

    public function add(string $key, float $delta): void
    {
        if ($delta < 0) {
            throw new \LogicException("$key goes back by $delta");
        }
        $this->values[$key] = ($this->values[$key] ?? 0.0) + $delta;
    }

    /** @param list<string> $labelNames */
    private function instrument(string $kind, string $name, array $labelNames): Instrument
    {
        if (($this->kinds[$name] ??= $kind) !== $kind) {
            throw new \LogicException("$name is a $kind now");
        }
        return new Instrument($this, $kind, $name, $labelNames);
    }
}
