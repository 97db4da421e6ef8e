<?php

declare(strict_types=1);

namespace Redlock\Tests\Telemetry;

use OpenTelemetry\API\Metrics\MeterInterface;
use OpenTelemetry\API\Metrics\MeterProviderInterface;
use OpenTelemetry\API\Metrics\ObserverInterface;
use OpenTelemetry\API\Trace\Span;
use OpenTelemetry\API\Trace\TracerInterface;
use OpenTelemetry\API\Trace\TracerProviderInterface;

final class StandInBackend extends Backend implements
    TracerProviderInterface,
    TracerInterface,
    MeterProviderInterface,
    MeterInterface
{
    /** @var list<Span> */
    private array $ended = [];
    /** @var list<array{\WeakReference<object>, callable, list<object>}> */
    private array $callbacks = [];
    private bool $isBroken = false;

    public function __construct()
    {
        $this->tracers = $this->meters = $this;
    }

    public function getTracer(
        string $name,
        ?string $version = null,
        ?string $schemaUrl = null,
        iterable $attributes = [],
    ): TracerInterface {
        return $this;
    }

    public function isEnabled(): bool
    {
        return true;
    }

    public function spanBuilder(string $spanName): Span
    {
        if ($this->isBroken) {
            throw new \LogicException('no spans today');
        }
        return new Span($spanName, function (Span $span): void {
            $this->ended[] = $span;
        });
    }

    public function breakTracer(): void
    {
        $this->isBroken = true;
    }

    public function spans(): array
    {
        \usort($this->ended, static fn (Span $a, Span $b): int => $a->startNs <=> $b->startNs);
        return \array_map(static fn (Span $span): array => [
            'name' => $span->name,
            'parent' => $span->parent?->name,
            'kind' => $span->kind,
            'attributes' => $span->attributes,
            'status' => $span->status,
            'description' => $span->description,
            'events' => $span->events,
            'start' => $span->startNs,
            'end' => $span->endNs,
        ], $this->ended);
    }

    public function getMeter(
        string $name,
        ?string $version = null,
        ?string $schemaUrl = null,
        iterable $attributes = [],
    ): MeterInterface {
        return $this;
    }

    public function createObservableGauge(
        string $name,
        ?string $unit = null,
        ?string $description = null,
        array|callable $advisory = [],
        callable ...$callbacks,
    ): object {
        return (object) ['name' => $name];
    }

    public function createObservableCounter(
        string $name,
        ?string $unit = null,
        ?string $description = null,
        array|callable $advisory = [],
        callable ...$callbacks,
    ): object {
        return (object) ['name' => $name];
    }

    /** As the SDK, it does not keep alive what observes. */
    public function batchObserve(callable $callback, object $instrument, object ...$instruments): object
    {
        $bound = (new \ReflectionFunction($callback))->getClosureThis();
        $method = (new \ReflectionFunction($callback))->getName();
        $this->callbacks[] = [\WeakReference::create($bound), $method, [$instrument, ...$instruments]];
        return new \stdClass();
    }

    public function metrics(): array
    {
        $values = new \ArrayObject();
        foreach ($this->callbacks as [$bound, $method, $instruments]) {
            $observers = \array_map(static fn (object $instrument): ObserverInterface =>
                new class ($instrument->name, $values) implements ObserverInterface {
                    public function __construct(private string $name, private \ArrayObject $values)
                    {
                    }

                    public function observe(float|int $amount, iterable $attributes = []): void
                    {
                        $this->values[$this->name] = [...($this->values[$this->name] ?? []), [$attributes, $amount]];
                    }
                }, $instruments);
            $object = $bound->get();
            $object === null || (new \ReflectionMethod($object, $method))->invoke($object, ...$observers);
        }
        return $values->getArrayCopy();
    }
}
