<?php

declare(strict_types=1);

namespace Redlock\OpenTelemetry;

use OpenTelemetry\API\Globals;
use OpenTelemetry\API\Trace\TracerInterface;
use OpenTelemetry\API\Trace\TracerProviderInterface;
use Redlock\ClientInterface;
use Redlock\Elects;
use Redlock\Exception\InvalidOptionException;
use Redlock\LockInterface;
use Redlock\Options;
use Redlock\ResourceStatus;

/**
 * A client whose locks have spans: redlock.acquire, redlock.extend, redlock.expire, redlock.release, and redlock.hold
 * around a body of run(). Everything else is the other client's.
 */
final class TracedClient implements ClientInterface
{
    use Elects;

    private readonly TracerInterface $tracer;

    /**
     * @param ?TracerProviderInterface $provider null: the program's
     * @param string $name tells several clients of a program apart, as the attribute redlock.client
     */
    public function __construct(
        private readonly ClientInterface $client,
        ?TracerProviderInterface $provider = null,
        private readonly string $name = '',
    ) {
        $this->tracer = ($provider ?? Globals::tracerProvider())->getTracer('libredlock', \redlock_version());
    }

    /** @param never ...$unknown */
    public function lock(
        string|array $resource,
        /* options of locks: made by ./dev docs */
        ?int $ttlMs = null, ?int $waitMs = null, ?int $outageWaitMs = null, ?int $retryCount = null,
        ?int $retryDelayMs = null, ?float $retryJitter = null, ?bool $queue = null, ?bool $fence = null,
        ?bool $shared = null, ?int $permits = null, ?int $slot = null, ?string $layout = null,
        ?float $driftFactor = null, int|string|null $nodeTimeoutMs = null, int|string|null $minValidityMs = null,
        ?bool $renew = null, ?bool $reentrant = null, ?int $maxExtensions = null, ?int $maxHoldMs = null,
        ?bool $strictRelease = null,
        /* end of options */
        mixed ...$unknown,
    ): TracedLock {
        $options = Options::given(\get_defined_vars(), $unknown);
        try {
            return $this->lockFromArray($resource, $options);
        } catch (InvalidOptionException $refused) {
            throw Options::inNames($refused);
        }
    }

    public function lockFromArray(string|array $resource, array $options): TracedLock
    {
        $options = Options::fromArray($options);
        return $this->traced($this->client->lockFromArray($resource, $options), $resource, $options);
    }

    /** @param never ...$unknown */
    public function adopt(
        string|array $resource,
        string $token,
        /* options of locks: made by ./dev docs */
        ?int $ttlMs = null, ?int $waitMs = null, ?int $outageWaitMs = null, ?int $retryCount = null,
        ?int $retryDelayMs = null, ?float $retryJitter = null, ?bool $queue = null, ?bool $fence = null,
        ?bool $shared = null, ?int $permits = null, ?int $slot = null, ?string $layout = null,
        ?float $driftFactor = null, int|string|null $nodeTimeoutMs = null, int|string|null $minValidityMs = null,
        ?bool $renew = null, ?bool $reentrant = null, ?int $maxExtensions = null, ?int $maxHoldMs = null,
        ?bool $strictRelease = null,
        /* end of options */
        mixed ...$unknown,
    ): TracedLock {
        $options = Options::given(\get_defined_vars(), $unknown);
        $lock = $this->client->adopt($resource, $token, ...Options::named($options));
        return $this->traced($lock, $resource, $options);
    }

    public function status(string $resource): ResourceStatus
    {
        return $this->client->status($resource);
    }

    public function remove(string $resource): void
    {
        $this->client->remove($resource);
    }

    public function describe(): array
    {
        return $this->client->describe();
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

    /**
     * @param string|array<string> $resource
     * @param array<string, mixed> $options by the names of the table
     */
    private function traced(LockInterface $lock, string|array $resource, array $options): TracedLock
    {
        $attributes = ['redlock.resource' => \implode(', ', \array_map(self::shown(...), (array) $resource))]
            + ($this->name === '' ? [] : ['redlock.client' => $this->name]);
        $option = fn (string $name): int => (int) ($options[$name] ?? $this->client->option($name));
        return new TracedLock($lock, new Spans($this->tracer, $attributes), $option('ttl_ms'), $option('wait_ms'));
    }

    /** Attributes are UTF-8, a resource any bytes. */
    private static function shown(string $resource): string
    {
        return \preg_match('//u', $resource) === 1 ? $resource : \addcslashes($resource, "\0..\37\177..\377");
    }
}
