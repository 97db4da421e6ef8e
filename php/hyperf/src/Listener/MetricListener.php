<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Listener;

use Hyperf\Contract\ConfigInterface;
use Hyperf\Coordinator\Timer;
use Hyperf\Event\Contract\ListenerInterface;
use Hyperf\Framework\Event\BeforeWorkerStart;
use Hyperf\Framework\Event\OnWorkerStop;
use Hyperf\Metric\Adapter\RemoteProxy\MetricFactory as RemoteFactory;
use Hyperf\Metric\Contract\MetricCollectorInterface;
use Hyperf\Metric\Contract\MetricFactoryInterface;
use Hyperf\Server\Event\MainCoroutineServerStart;
use Psr\Container\ContainerInterface;
use Redlock\Hyperf\Locks;
use Redlock\Hyperf\Metrics;

/**
 * Where hyperf/metric is installed: every worker reports its figures as often as the default metrics are collected, and
 * for the last time when it stops.
 */
final class MetricListener implements ListenerInterface
{
    private readonly Timer $timer;
    private ?Metrics $metrics = null;

    public function __construct(private readonly ContainerInterface $container, ?Timer $timer = null)
    {
        $this->timer = $timer ?? new Timer();
    }

    public function listen(): array
    {
        return [BeforeWorkerStart::class, MainCoroutineServerStart::class, OnWorkerStop::class];
    }

    public function process(object $event): void
    {
        $event instanceof OnWorkerStop ? $this->stop() : $this->start($event->workerId ?? 0);
    }

    private function start(int $worker): void
    {
        $intervalS = (float) $this->container->get(ConfigInterface::class)->get('metric.default_metric_interval', 5);
        $metrics = new Metrics($this->container->get(Locks::class),
            $this->container->get(MetricFactoryInterface::class), $worker);
        $this->metrics = $metrics;
        $this->timer->tick($intervalS, static fn () => $metrics->report());
    }

    /** Reports to the metric process are buffered until there are enough; they would be lost with the worker. */
    private function stop(): void
    {
        $this->metrics?->report();
        if ($this->container->get(MetricFactoryInterface::class) instanceof RemoteFactory) {
            $this->container->get(MetricCollectorInterface::class)->flush();
        }
    }
}
