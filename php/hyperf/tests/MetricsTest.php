<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests;

use Hyperf\Contract\ConfigInterface;
use Hyperf\Coordinator\Timer;
use Hyperf\Framework\Event\BeforeWorkerStart;
use Hyperf\Framework\Event\OnWorkerStop;
use Hyperf\Metric\Contract\MetricCollectorInterface;
use Hyperf\Metric\Contract\MetricFactoryInterface;
use Hyperf\Server\Event\MainCoroutineServerStart;
use Psr\EventDispatcher\EventDispatcherInterface;
use Redlock\Event\Acquired;
use Redlock\Event\LockEvent;
use Redlock\Event\Released;
use Redlock\Exception\InvalidOptionException;
use Redlock\Hyperf\ConfigProvider;
use Redlock\Hyperf\Listener\MetricListener;
use Redlock\Hyperf\Locks;
use Redlock\Hyperf\LocksFactory;
use Redlock\Hyperf\Metrics;
use Redlock\Tests\Dispatcher;
use Redlock\Tests\NodesTestCase;
use Redlock\Verdict;

require_once __DIR__ . '/hyperf.php';

/** Figures for hyperf/metric, and events for Hyperf's dispatcher. */
final class MetricsTest extends NodesTestCase
{
    private MetricFactory $factory;
    private Locks $locks;

    protected function setUp(): void
    {
        parent::setUp();
        $this->factory = new MetricFactory();
        self::cluster()->bootstrap(keyPrefix: 'o:');
        $other = ['key_prefix' => 'o:'] + $this->config();
        $this->locks = new Locks(['default' => $this->config(), 'other' => $other], []);
    }

    private function value(string $name, string $labels = '', string $cluster = 'default'): ?float
    {
        $more = $labels === '' ? '' : ",$labels";
        return $this->factory->values["redlock_$name{cluster=$cluster,worker=3$more}"] ?? null;
    }

    private function work(string $cluster = 'default'): void
    {
        $this->locks->lock('r', $cluster)->run(static fn (): int => 1);
    }

    public function testClustersThatShareTheirConnectionsAreCountedOnce(): void
    {
        $patient = ['wait_ms' => 60000] + $this->config();
        $this->locks = new Locks(['default' => $this->config(), 'patient' => $patient], []);
        $this->work();
        $this->work('patient');
        (new Metrics($this->locks, $this->factory, 3))->report();
        $this->assertSame(2.0, $this->value('acquisitions_total', 'status=OK'));
        $this->assertNull($this->value('acquisitions_total', 'status=OK', 'patient'));
    }

    public function testTheFiguresAreThoseOfTheClients(): void
    {
        $metrics = new Metrics($this->locks, $this->factory, 3);
        $metrics->report();
        $this->assertSame([], $this->factory->values); /* no client yet */
        $this->work();
        $metrics->report();
        $this->work();
        $this->work();
        $this->work('other');
        $metrics->report();
        $metrics->report();
        $this->assertSame(3.0, $this->value('acquisitions_total', 'status=OK'));
        $this->assertSame(1.0, $this->value('acquisitions_total', 'status=OK', 'other'));
        $this->assertSame(0.0, $this->value('losses_total', 'reason=gone'));
        $this->assertSame(3.0, $this->value('wait_seconds_count'));
        $this->assertSame(3.0, $this->value('hold_seconds_bucket', 'le=+Inf'));
        $told = $this->locks->client()->describe();
        $this->assertEqualsWithDelta($told['wait_us']['sum'] / 1e6, $this->value('wait_seconds_sum'), 1e-6);
        $this->assertSame(0.0, $this->value('locks_held'));
        foreach ($told['nodes'] as $node) {
            $this->assertSame((float) $node['answers']['granted'],
                $this->value('node_votes_total', "node=$node[node],vote=granted"));
        }
        $this->assertSame(['counter', 'gauge', 'gauge'], [$this->factory->kinds['redlock_attempts_total'],
            $this->factory->kinds['redlock_acquisitions_waiting'], $this->factory->kinds['redlock_hold_seconds_sum']]);
        $this->assertArrayNotHasKey('redlock_library_info', $this->factory->kinds);
    }

    /** Its figures begin at zero, and what the counters were told before stays. */
    public function testFiguresGoOnWhenAClientIsRecreated(): void
    {
        $metrics = new Metrics($this->locks, $this->factory, 3);
        $this->work();
        $this->work();
        $metrics->report();
        $this->locks->close();
        $this->work();
        $this->work();
        $this->work();
        $metrics->report();
        $this->assertSame([5.0, 5.0], [$this->value('acquisitions_total', 'status=OK'),
            $this->value('attempts_per_acquisition_sum')]);
    }

    /** @param array<string, mixed> $values */
    private function hyperfConfig(array $values): ConfigInterface
    {
        return new class ($values) implements ConfigInterface {
            public function __construct(private readonly array $values)
            {
            }

            public function get(string $key, mixed $default = null): mixed
            {
                return $this->values[$key] ?? $default;
            }

            public function has(string $keys): bool
            {
                return isset($this->values[$keys]);
            }

            public function set(string $key, mixed $value): void
            {
                throw new \LogicException("$key is being changed");
            }
        };
    }

    public function testEveryWorkerReportsFromTimeToTime(): void
    {
        $listener = new MetricListener(new Container([
            ConfigInterface::class => $this->hyperfConfig(['metric.default_metric_interval' => 7]),
            Locks::class => $this->locks,
            MetricFactoryInterface::class => $this->factory,
        ]), $timer = new Timer());
        $listener->process(WorkerEvent::make(BeforeWorkerStart::class));
        $this->work();
        $this->assertSame([], $this->factory->values);
        [[$intervalS, $report]] = $timer->ticks;
        $report(false);
        $this->assertSame([7.0, 1.0], [$intervalS, $this->value('acquisitions_total', 'status=OK')]);
        $listener->process(new MainCoroutineServerStart('http', $this, []));
        $this->assertCount(2, $timer->ticks);
    }

    /** @return array<string, array{bool}> */
    public static function factories(): array
    {
        return ['told at once' => [false], 'kept for the metric process' => [true]];
    }

    /** @dataProvider factories */
    public function testAWorkerThatStopsHasReportedEverything(bool $isRemote): void
    {
        $container = new Container([
            ConfigInterface::class => $this->hyperfConfig([]),
            Locks::class => $this->locks,
            MetricFactoryInterface::class => $isRemote ? $remote = new KeptMetrics($this->factory) : $this->factory,
        ] + ($isRemote ? [MetricCollectorInterface::class => $remote] : []));
        $container->dispatch(WorkerEvent::make(OnWorkerStop::class)); /* one that never started */
        $container->dispatch(WorkerEvent::make(BeforeWorkerStart::class));
        $this->work();
        $container->dispatch(WorkerEvent::make(OnWorkerStop::class));
        $this->assertSame(1.0, $this->value('acquisitions_total', 'status=OK'));
        $this->assertConnections(0);
    }

    public function testTheListenerIsThereWithHyperfMetricOnly(): void
    {
        $this->assertContains(MetricListener::class, (new ConfigProvider())()['listeners']);
        $code = 'require $argv[1]; echo json_encode((new Redlock\Hyperf\ConfigProvider())()["listeners"]);';
        $process = \proc_open([\PHP_BINARY, '-r', $code, \dirname(__DIR__) . '/src/ConfigProvider.php'],
            [1 => ['pipe', 'w']], $pipes);
        $without = \json_decode(\stream_get_contents($pipes[1]), true);
        \proc_close($process);
        $this->assertCount(2, $without);
        $this->assertNotContains(MetricListener::class, $without);
    }

    public function testEventsReachHyperfsDispatcher(): void
    {
        $made = [ConfigInterface::class => $this->hyperfConfig(['redlock' => ['default' => $this->config()]])];
        $locks = (new LocksFactory())(new Container($made));
        $this->assertSame(1, $locks->lock('r')->run(static fn (): int => 1));
        $made[EventDispatcherInterface::class] = $heard = new Dispatcher();
        $locks = (new LocksFactory())(new Container($made));
        $locks->lock('r')->run(static fn (): int => 1);
        $this->assertSame(['Acquired', 'Released'], $heard->names());
    }

    public function testAConfigurationWithoutReturnIsNamed(): void
    {
        $made = [ConfigInterface::class => $this->hyperfConfig(['redlock' => 1])];
        $this->expectException(InvalidOptionException::class);
        $this->expectExceptionMessage("config/autoload/redlock.php; there are: none: it has to return ['default' => ");
        (new LocksFactory())(new Container($made))->client();
    }

    /** Hyperf's dispatcher makes all listeners when it is made: ours, and those of a service that uses locks. */
    public function testListenersMayUseLocks(): void
    {
        $heard = [];
        $container = new Container();
        $container->factories = [
            ConfigInterface::class => fn (): ConfigInterface =>
                $this->hyperfConfig(['redlock' => ['default' => $this->config()]]),
            Locks::class => new LocksFactory(),
            EventDispatcherInterface::class => static function () use ($container, &$heard): Dispatcher {
                $container->listeners();
                $locks = $container->get(Locks::class);
                return new Dispatcher(static function (object $event) use ($locks, &$heard): void {
                    $heard[] = [$event::class, $locks->client()->status('r')->verdict];
                });
            },
        ];
        $container->get(EventDispatcherInterface::class);
        $container->get(Locks::class)->lock('r')->run(static fn (): int => 1);
        $locks = \array_filter($heard, static fn (array $one): bool => \is_a($one[0], LockEvent::class, true));
        $this->assertSame([[Acquired::class, Verdict::Held], [Released::class, Verdict::Free]],
            \array_values($locks));
    }
}
