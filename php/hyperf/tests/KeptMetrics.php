<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests;

use Hyperf\Metric\Adapter\RemoteProxy\MetricFactory as RemoteFactory;
use Hyperf\Metric\Contract\CounterInterface;
use Hyperf\Metric\Contract\GaugeInterface;
use Hyperf\Metric\Contract\HistogramInterface;
use Hyperf\Metric\Contract\MetricCollectorInterface;

/** As in a worker whose metrics go to a process: they are kept until they are flushed. */
final class KeptMetrics extends RemoteFactory implements MetricCollectorInterface
{
    private readonly MetricFactory $kept;

    public function __construct(private readonly MetricFactory $process)
    {
        $this->kept = new MetricFactory();
    }

    public function makeCounter(string $name, ?array $labelNames = []): CounterInterface
    {
        return $this->kept->makeCounter($name, $labelNames);
    }

    public function makeGauge(string $name, ?array $labelNames = []): GaugeInterface
    {
        return $this->kept->makeGauge($name, $labelNames);
    }

    public function makeHistogram(string $name, ?array $labelNames = []): HistogramInterface
    {
        return $this->kept->makeHistogram($name, $labelNames);
    }

    public function handle(): void
    {
    }

    public function add(object $data): void
    {
        throw new \LogicException('the instruments do that');
    }

    public function flush(): void
    {
        $this->process->values = $this->kept->values;
    }
}
