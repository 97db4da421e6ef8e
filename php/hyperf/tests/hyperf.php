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

namespace Hyperf\Command {
    abstract class Command
    {
        public const SUCCESS = 0;
        public const FAILURE = 1;

        /** In place of Symfony's, whose getArgument() and getOption() commands call. */
        public ?object $input = null;

        /** @var list<mixed> */
        public array $said = [];

        public function __construct(?string $name = null)
        {
        }

        public function table(array $headers, array $rows, $tableStyle = 'default', array $columnStyles = []): void
        {
            \array_push($this->said, $headers, ...$rows);
        }

        public function line($string, $style = null, $verbosity = null)
        {
            $this->said[] = $string;
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
        public function collectClass(string $className): void
        {
            AnnotationCollector::collectClass($className, static::class, $this);
        }

        public function collectMethod(string $className, ?string $target): void
        {
            AnnotationCollector::collectMethod($className, $target, static::class, $this);
        }
    }

    abstract class AbstractMultipleAnnotation extends AbstractAnnotation
    {
        public function collectClass(string $className): void
        {
            $annotation = AnnotationCollector::getClassAnnotation($className, static::class);
            AnnotationCollector::collectClass($className, static::class, $this->formatAnnotation($annotation));
        }

        public function collectMethod(string $className, ?string $target): void
        {
            $annotation = AnnotationCollector::getClassMethodAnnotation($className, $target)[static::class] ?? null;
            AnnotationCollector::collectMethod($className, $target, static::class,
                $this->formatAnnotation($annotation));
        }

        protected function formatAnnotation(?MultipleAnnotation $annotation): MultipleAnnotation
        {
            return ($annotation ?? new MultipleAnnotation())->with($this);
        }
    }

    class MultipleAnnotation
    {
        private array $annotations = [];

        public function with(AbstractAnnotation $annotation): static
        {
            $this->annotations[] = $annotation;
            return $this;
        }

        public function toAnnotations(): array
        {
            return $this->annotations;
        }
    }

    class AnnotationCollector
    {
        public static array $classes = [];
        public static array $methods = [];

        public static function list(): array
        {
            return self::$classes + self::$methods;
        }

        public static function collectClass(string $class, string $annotation, mixed $value): void
        {
            self::$classes[$class][$annotation] = $value;
        }

        public static function collectMethod(string $class, string $method, string $annotation, mixed $value): void
        {
            self::$methods[$class][$method][$annotation] = $value;
        }

        public static function getClassMethodAnnotation(string $class, string $method): ?array
        {
            return self::$methods[$class][$method] ?? null;
        }

        public static function getClassAnnotation(string $class, string $annotation): mixed
        {
            return self::$classes[$class][$annotation] ?? null;
        }

        public static function getClassesByAnnotation(string $annotation): array
        {
            return \array_filter(\array_map(static fn (array $found): mixed => $found[$annotation] ?? null,
                self::$classes));
        }

        public static function getMethodsByAnnotation(string $annotation): array
        {
            $found = [];
            foreach (self::$methods as $class => $methods) {
                foreach ($methods as $method => $annotations) {
                    isset($annotations[$annotation]) && $found[] = ['class' => $class, 'method' => $method];
                }
            }
            return $found;
        }
    }
}
