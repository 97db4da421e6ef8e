<?php

declare(strict_types=1);

namespace Redlock\OpenTelemetry;

use OpenTelemetry\API\Globals;
use OpenTelemetry\API\Metrics\MeterInterface;
use OpenTelemetry\API\Metrics\MeterProviderInterface;
use OpenTelemetry\API\Metrics\ObserverInterface;
use Redlock\ClientInterface;
use Redlock\Figures;

/**
 * The figures of a client as observable instruments: they are read when they are exported, as long as this object is
 * kept. OpenTelemetry has no observable histograms: each is three counters, its buckets with the bound as "le".
 */
final class Metrics
{
    private const PARTS = ['_bucket' => '.bucket', '_count' => '.count', '_sum' => '.sum'];

    /** @var list<string> names of samples, in the order of their instruments */
    private array $names = [];

    /** @param string $name tells several clients of a program apart, as the attribute redlock.client */
    public function __construct(
        private readonly ClientInterface $client,
        ?MeterProviderInterface $provider = null,
        private readonly string $name = '',
    ) {
        $meter = ($provider ?? Globals::meterProvider())->getMeter('libredlock', \redlock_version());
        $instruments = [];
        foreach (Figures::read($client->metrics()) as $figure) {
            foreach (self::instruments($meter, $figure) as $sample => $instrument) {
                $this->names[] = $sample;
                $instruments[] = $instrument;
            }
        }
        $instruments === [] || $meter->batchObserve($this->observe(...), ...$instruments);
    }

    /** @return array<string, mixed> by the names of their samples */
    private static function instruments(MeterInterface $meter, Figures $figure): array
    {
        $name = \preg_replace(['/^redlock_/', '/\.node_/', '/_seconds$/'], ['redlock.', '.node.', ''], $figure->name);
        $unit = \str_ends_with($figure->name, '_seconds') ? 's' : null;
        $made = [];
        if ($figure->kind === 'gauge') {
            $made[$figure->name] = $meter->createObservableGauge($name, $unit, $figure->help);
        } elseif ($figure->kind === 'counter') {
            $made[$figure->name . '_total'] = $meter->createObservableCounter($name, $unit, $figure->help);
        } elseif ($figure->kind === 'histogram') {
            foreach (self::PARTS as $sample => $part) {
                $made[$figure->name . $sample] = $meter->createObservableCounter($name . $part,
                    $part === '.sum' ? $unit : null, $figure->help);
            }
        }
        return $made;
    }

    private function observe(ObserverInterface ...$observers): void
    {
        $observers = \array_combine($this->names, $observers);
        $more = $this->name === '' ? [] : ['redlock.client' => $this->name];
        foreach (Figures::read($this->client->metrics()) as $figure) {
            foreach ($figure->samples as [$name, $labels, $value]) {
                ($observers[$name] ?? null)?->observe($value, $labels + $more);
            }
        }
    }
}
