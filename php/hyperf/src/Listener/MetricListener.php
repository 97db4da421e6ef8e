<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Listener;

use Hyperf\Contract\ConfigInterface;
use Hyperf\Coordinator\Timer;
use Hyperf\Event\Contract\ListenerInterface;
use Hyperf\Framework\Event\BeforeWorkerStart;
use Hyperf\Metric\Contract\MetricFactoryInterface;
use Hyperf\Server\Event\MainCoroutineServerStart;
use Psr\Container\ContainerInterface;
use Redlock\Hyperf\Locks;
use Redlock\Hyperf\Metrics;

/** Where hyperf/metric is installed: every worker reports its figures as often as the default metrics are collected. */
final class MetricListener implements ListenerInterface
{
    private readonly Timer $timer;

    public function __construct(private readonly ContainerInterface $container, ?Timer $timer = null)
    {
        $this->timer = $timer ?? new Timer();
    }

    public function listen(): array
    {
        return [BeforeWorkerStart::class, MainCoroutineServerStart::class];
    }

    public function process(object $event): void
    {
        $intervalS = (float) $this->container->get(ConfigInterface::class)->get('metric.default_metric_interval', 5);
        $metrics = new Metrics($this->container->get(Locks::class),
            $this->container->get(MetricFactoryInterface::class), $event->workerId ?? 0);
        $this->timer->tick($intervalS, static fn () => $metrics->report());
    }
}
