<?php

declare(strict_types=1);

namespace Redlock\Tests\Telemetry;

use OpenTelemetry\API\Metrics\MeterProviderInterface;
use OpenTelemetry\API\Trace\TracerProviderInterface;

/** What a program's OpenTelemetry has been told; its SDK where it is installed, else a stand-in. */
abstract class Backend
{
    public TracerProviderInterface $tracers;
    public MeterProviderInterface $meters;

    public static function make(): self
    {
        if (\class_exists(\OpenTelemetry\SDK\Trace\TracerProvider::class)) {
            return new SdkBackend();
        }
        require_once __DIR__ . '/standins.php';
        return new StandInBackend();
    }

    /**
     * The ended spans in the order of their beginnings.
     *
     * @return list<array{name: string, parent: ?string, kind: int, attributes: array, status: string,
     *     description: ?string, events: list<array{string, array}>, start: int, end: int}>
     */
    abstract public function spans(): array;

    /** @return array<string, list<array{array<string, string>, float|int}>> attributes and values by instrument */
    abstract public function metrics(): array;

    /** From now on no span can be made. */
    abstract public function breakTracer(): void;

    /** Runs a body in a span of the program. */
    public function in(string $name, \Closure $body): mixed
    {
        $span = $this->tracers->getTracer('program')->spanBuilder($name)->startSpan();
        $scope = $span->activate();
        try {
            return $body();
        } finally {
            $scope->detach();
            $span->end();
        }
    }

    /** @return list<string> names, without what is the same in all of them */
    public function names(): array
    {
        return \str_replace('redlock.', '', \array_column($this->spans(), 'name'));
    }

    /** @return array<string, mixed> the only span of a name */
    public function one(string $name): array
    {
        $found = \array_filter($this->spans(), static fn (array $span): bool => $span['name'] === "redlock.$name");
        if (\count($found) !== 1) {
            throw new \LogicException(\count($found) . " spans redlock.$name");
        }
        return \reset($found);
    }

    /** @return array<string, mixed> */
    public function attributes(string $name): array
    {
        $attributes = $this->one($name)['attributes'];
        return \array_combine(\str_replace('redlock.', '', \array_keys($attributes)), $attributes);
    }
}
