<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests;

use Hyperf\Metric\Contract\CounterInterface;
use Hyperf\Metric\Contract\GaugeInterface;

/** A counter or a gauge of a MetricFactory. */
final class Instrument implements CounterInterface, GaugeInterface
{
    private string $labels = '';

    /** @param list<string> $labelNames */
    public function __construct(
        private readonly MetricFactory $factory,
        private readonly string $kind,
        private readonly string $name,
        private readonly array $labelNames,
    ) {
    }

    public function with(string ...$labelValues): static
    {
        $labels = \array_combine($this->labelNames, $labelValues);
        $this->labels = \implode(',', \array_map(static fn (string $name, string $value): string => "$name=$value",
            \array_keys($labels), $labels));
        return $this;
    }

    public function add(int|float $delta): void
    {
        if ($this->kind === 'counter' && !\is_int($delta)) {
            throw new \TypeError("$this->name counts whole things");
        }
        $this->factory->add("$this->name{{$this->labels}}", $delta);
    }

    public function set(float $value): void
    {
        if ($this->kind !== 'gauge') {
            throw new \LogicException("$this->name is a $this->kind");
        }
        $this->factory->values["$this->name{{$this->labels}}"] = $value;
    }
}
