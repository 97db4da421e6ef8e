<?php

declare(strict_types=1);

/* What the component needs of Hyperf, for tests without it. */

namespace Hyperf\Event\Contract {
    interface ListenerInterface
    {
        public function listen(): array;

        public function process(object $event): void;
    }
}

namespace Hyperf\Contract {
    interface ConfigInterface
    {
        public function get(string $key, mixed $default = null): mixed;
    }

    interface StdoutLoggerInterface
    {
    }
}

namespace Hyperf\Coordinator {
    class Timer
    {
        /** @var list<array{float, callable}> */
        public array $ticks = [];

        public function tick(float $timeout, callable $closure): int
        {
            $this->ticks[] = [$timeout, $closure];
            return \count($this->ticks);
        }
    }
}

namespace Hyperf\Metric\Contract {
    interface CounterInterface
    {
        public function with(string ...$labelValues): static;

        public function add(int $delta): void;
    }

    interface GaugeInterface
    {
        public function with(string ...$labelValues): static;

        public function set(float $value): void;

        public function add(float $delta): void;
    }

    interface HistogramInterface
    {
        public function with(string ...$labelValues): static;

        public function put(float $sample): void;
    }

    interface MetricFactoryInterface
    {
        public function makeCounter(string $name, ?array $labelNames = []): CounterInterface;

        public function makeGauge(string $name, ?array $labelNames = []): GaugeInterface;

        public function makeHistogram(string $name, ?array $labelNames = []): HistogramInterface;

        public function handle(): void;
    }
}

namespace Psr\Container {
    if (!\interface_exists(ContainerInterface::class)) {
        interface ContainerInterface
        {
            public function get(string $id);

            public function has(string $id): bool;
        }
    }
}

namespace Hyperf\Server\Event {
    final class MainCoroutineServerStart
    {
    }
}

namespace Hyperf\Framework\Event {
    final class BeforeWorkerStart
    {
        public function __construct(public object $server, public int $workerId)
        {
        }
    }

    final class OnWorkerExit
    {
    }

    final class OnWorkerStop
    {
    }
}

namespace Hyperf\Di\Annotation {
    abstract class AbstractAnnotation
    {
    }

    abstract class AbstractMultipleAnnotation extends AbstractAnnotation
    {
    }
}
