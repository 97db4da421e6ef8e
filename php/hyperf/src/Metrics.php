<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

use Hyperf\Metric\Contract\MetricFactoryInterface;
use Redlock\Client;
use Redlock\Figures;

/**
 * Gives the figures of a worker's clients to hyperf/metric, labelled with cluster and worker. Clusters that share their
 * connections have one set of figures, which goes by the name that was used first. A histogram of hyperf/metric takes
 * single values only, so one becomes what Prometheus makes of it: counters _bucket and _count, and a gauge _sum.
 */
final class Metrics
{
    /** @var \WeakMap<Client, array<string, float>> the values reported so far, by counter */
    private \WeakMap $told;

    public function __construct(
        private readonly Locks $locks,
        private readonly MetricFactoryInterface $factory,
        private readonly int $worker,
    ) {
        $this->told = new \WeakMap();
    }

    public function report(): void
    {
        foreach ($this->clients() as $name => $client) {
            $labels = ['cluster' => \preg_replace('/^cluster /', '', $name), 'worker' => (string) $this->worker];
            $told = $this->told[$client] ?? [];
            foreach (Figures::read($client->metrics()) as $figure) {
                foreach ($figure->kind === 'info' ? [] : $figure->samples as [$sample, $more, $value]) {
                    $figure->kind === 'gauge'
                        ? $this->gauge($sample, $labels + $more, $value)
                        : $this->count($sample, $labels + $more, $value, $told);
                }
            }
            $this->told[$client] = $told;
        }
    }

    /** @return array<string, Client> */
    private function clients(): array
    {
        $clients = $seen = [];
        foreach ($this->locks->clients() as $name => $client) {
            $clients += isset($seen[$client->connectionsId()]) ? [] : [$name => $client];
            $seen[$client->connectionsId()] = true;
        }
        return $clients;
    }

    /**
     * An instrument is made for each sample: those of a worker are messages, which are kept until they are sent.
     *
     * @param array<string, string> $labels
     */
    private function gauge(string $name, array $labels, float $value): void
    {
        $this->factory->makeGauge($name, \array_keys($labels))->with(...\array_values($labels))->set($value);
    }

    /**
     * Counters over all clients of a worker are increased by the difference since the last time. A sum has fractions,
     * and only a gauge takes them.
     *
     * @param array<string, string> $labels
     * @param array<string, float> $told
     */
    private function count(string $name, array $labels, float $value, array &$told): void
    {
        $key = "$name " . \implode(' ', $labels);
        if (($told[$key] ?? null) === $value) {
            return;
        }
        $delta = $value - ($told[$key] ?? 0.0);
        $told[$key] = $value;
        [$names, $values] = [\array_keys($labels), \array_values($labels)];
        \str_ends_with($name, '_sum')
            ? $this->factory->makeGauge($name, $names)->with(...$values)->add($delta)
            : $this->factory->makeCounter($name, $names)->with(...$values)->add((int) $delta);
    }
}
