<?php

declare(strict_types=1);

/*
 * What the component needs of Hyperf, for tests without it. Names, parameters and types are those of Hyperf 3.2.
 * Classes may lack methods that the component does not call, interfaces lack none.
 */

namespace Swoole {
    if (!\class_exists(Server::class)) {
        class Server
        {
        }
    }
}

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

        public function has(string $keys): bool;

        public function set(string $key, mixed $value): void;
    }

    interface StdoutLoggerInterface extends \Psr\Log\LoggerInterface
    {
    }
}

namespace Hyperf\Coordinator {
    class Timer
    {
        /** @var list<array{float, callable}> */
        public array $ticks = [];

        public function __construct(?\Psr\Log\LoggerInterface $logger = null)
        {
        }

        public function tick(float $timeout, callable $closure, string $identifier = 'workerExit'): int
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

    interface MetricCollectorInterface
    {
        public function add(object $data): void;

        public function flush(): void;
    }
}

namespace Hyperf\Metric\Adapter\RemoteProxy {
    abstract class MetricFactory implements \Hyperf\Metric\Contract\MetricFactoryInterface
    {
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
    class MainCoroutineServerStart
    {
        public function __construct(public string $name, public mixed $server, public array $serverConfig)
        {
        }
    }
}

namespace Hyperf\Framework\Event {
    use Swoole\Server;

    class BeforeWorkerStart
    {
        public function __construct(public Server $server, public int $workerId)
        {
        }
    }

    class OnWorkerExit
    {
        public function __construct(public Server $server, public int $workerId)
        {
        }
    }

    class OnWorkerStop
    {
        public function __construct(public Server $server, public int $workerId)
        {
        }
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
