<?php

declare(strict_types=1);

namespace Redlock\OpenTelemetry;

use OpenTelemetry\API\Globals;
use OpenTelemetry\API\Trace\TracerInterface;
use OpenTelemetry\API\Trace\TracerProviderInterface;
use Redlock\Client;
use Redlock\ClientInterface;
use Redlock\Driver\Driver;
use Redlock\Listing;
use Redlock\Lock;
use Redlock\MakesLocks;

/**
 * A client whose locks have spans: redlock.acquire, redlock.extend, redlock.expire, redlock.release, and redlock.hold
 * around a body of run(). Everything else is the other client's.
 */
final class TracedClient implements ClientInterface
{
    use MakesLocks;

    private readonly TracerInterface $tracer;

    /**
     * @param ?TracerProviderInterface $provider null: the program's
     * @param string $name tells several clients of a program apart, as the attribute redlock.client
     */
    public function __construct(
        private readonly Client $client,
        ?TracerProviderInterface $provider = null,
        private readonly string $name = '',
    ) {
        $this->tracer = ($provider ?? Globals::tracerProvider())->getTracer('libredlock', \redlock_version());
    }

    /** @param array<string, mixed> $options by the names of the table */
    private function make(string|array $resource, array $options): Lock
    {
        $attributes = ['redlock.resource' => \implode(', ', \array_map(self::shown(...), (array) $resource))]
            + ($this->name === '' ? [] : ['redlock.client' => $this->name]);
        return $this->client->lockFromArray($resource, $options)->remade([],
            fn (Driver $driver): Driver => new TracedDriver($driver, new Spans($this->tracer, $attributes)));
    }

    public function describe(): array
    {
        return $this->client->describe();
    }

    public function locks(string $pattern = '*', ?int $limitMs = null): Listing
    {
        return $this->client->locks($pattern, $limitMs);
    }

    public function check(): array
    {
        return $this->client->check();
    }

    public function metrics(): string
    {
        return $this->client->metrics();
    }

    public function option(string $name): string
    {
        return $this->client->option($name);
    }

    public function inFlight(): int
    {
        return $this->client->inFlight();
    }

    public function logEvents(): void
    {
        $this->client->logEvents();
    }

    public function drain(?int $limitMs = null): bool
    {
        return $this->client->drain($limitMs);
    }

    /** Attributes are UTF-8, a resource any bytes. */
    private static function shown(string $resource): string
    {
        return \preg_match('//u', $resource) === 1 ? $resource : \addcslashes($resource, "\0..\37\177..\377");
    }
}
