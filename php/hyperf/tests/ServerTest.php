<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests;

use Redlock\Tests\NodesTestCase;
use Redlock\Tests\Wait;

/** php/hyperf/example on a real Hyperf server; REDLOCK_HYPERF_APP names a copy of it with its packages installed. */
final class ServerTest extends NodesTestCase
{
    private string $app;
    private int $port;
    /** @var resource bound, not listening: keeps the port reserved */
    private $reservation;
    /** @var resource */
    private $server;

    protected function setUp(): void
    {
        $this->app = (string) \getenv('REDLOCK_HYPERF_APP');
        if (!\is_file("$this->app/vendor/autoload.php") || !\extension_loaded('swoole')) {
            $this->markTestSkipped('Hyperf is not installed');
        }
        parent::setUp();
        $this->reservation = \stream_socket_server('tcp://127.0.0.1:0', $number, $message, \STREAM_SERVER_BIND);
        $this->port = (int) \substr(\strrchr(\stream_socket_get_name($this->reservation, false), ':'), 1);
    }

    /** @param array<string, string> $environment */
    private function start(array $environment = []): void
    {
        $this->launch($environment);
        Wait::until(fn (): bool => $this->answers(['/numbers'])[0] !== 'none', 'the server to answer', 60);
    }

    /** @param array<string, string> $environment */
    private function launch(array $environment): void
    {
        $environment += ['REDLOCK_NODES' => self::cluster()->urls(), 'PORT' => (string) $this->port, 'WORKERS' => '2']
            + \getenv();
        $command = [\PHP_BINARY, ...\preg_split('/\s+/', \getenv('REDLOCK_HYPERF_PHP') ?: '-d memory_limit=1G'),
            'bin/hyperf.php', 'start'];
        @\mkdir("$this->app/runtime");
        \file_put_contents($this->log(), '');
        $output = ['file', $this->log(), 'a']; /* twice: neither may write over what the other wrote */
        $this->server = \proc_open($command, [['file', '/dev/null', 'r'], $output, $output], $pipes, $this->app,
            $environment);
    }

    protected function tearDown(): void
    {
        if (isset($this->server)) {
            $this->isRunning() && \proc_terminate($this->server, \SIGTERM);
            Wait::until(fn (): bool => !$this->isRunning(), 'the server to end', 60);
            \proc_close($this->server);
        }
    }

    private function isRunning(): bool
    {
        return \proc_get_status($this->server)['running'];
    }

    private function log(): string
    {
        return "$this->app/runtime/server.log";
    }

    /**
     * Asks all paths at once.
     *
     * @param list<string> $paths
     * @return list<string> "STATUS BODY", or "none", in their order
     */
    private function answers(array $paths, ?\Closure $meanwhile = null): array
    {
        $sockets = \array_map($this->ask(...), $paths);
        $meanwhile === null || $meanwhile();
        return \array_map(static function ($socket): string {
            $answer = $socket === false ? '' : (string) @\stream_get_contents($socket);
            [$head, $body] = \explode("\r\n\r\n", $answer, 2) + ['', ''];
            return \preg_match('#^HTTP/1.1 (\d+)#', $head, $match) ? "$match[1] $body" : 'none';
        }, $sockets);
    }

    /** @return resource|false */
    private function ask(string $path): mixed
    {
        $socket = @\stream_socket_client("tcp://127.0.0.1:$this->port", $number, $message, 5);
        if ($socket !== false) {
            \fwrite($socket, "GET $path HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
            \stream_set_timeout($socket, 90);
        }
        return $socket;
    }

    /**
     * Pays all orders at once.
     *
     * @param list<string> $ids
     * @return list<string> as answers()
     */
    private function pay(array $ids, int $ms, ?\Closure $meanwhile = null): array
    {
        return $this->answers(\array_map(static fn (string $id): string => "/pay?id=$id&ms=$ms", $ids), $meanwhile);
    }

    /**
     * @param list<string> $ids
     * @return list<string>
     */
    private static function paid(array $ids): array
    {
        return \array_map(static fn (string $id): string => "200 paid $id", $ids);
    }

    /**
     * A customer who paid gets that answer, and no other.
     *
     * @param list<string> $ids
     */
    private function assertPaid(array $ids, int $ms, ?\Closure $meanwhile = null): void
    {
        $this->assertSame(self::paid($ids), $this->pay($ids, $ms, $meanwhile));
    }

    /** @return list<string> */
    private static function ids(int $count, int $different): array
    {
        return \array_map(static fn (int $i): string => 'n' . $i % $different, \range(1, $count));
    }

    private function reload(): void
    {
        \posix_kill((int) \file_get_contents("$this->app/runtime/hyperf.pid"), \SIGUSR1);
    }

    /** @return array<string, int> */
    private function numbers(): array
    {
        return \json_decode(\substr($this->answers(['/numbers'])[0], 4), true);
    }

    public function test200RequestsOnOneKeyAndOnManyAreServed(): void
    {
        $this->start();
        $this->assertPaid(self::ids(200, 1), 2);
        $this->assertPaid(self::ids(200, 200), 2);
        $this->assertSame(1, $this->numbers()['most at once']);
        $this->assertNothingIsLeft();
    }

    public function testRequestsAreServedWithANodeKilledAndAnotherStopped(): void
    {
        $this->start();
        $nodes = self::cluster()->nodes;
        $this->assertPaid(self::ids(200, 20), 10, static function () use ($nodes): void {
            $nodes[0]->kill();
            $nodes[1]->stop();
        });
    }

    /** @return array<string, array{string, int}> */
    public static function reloads(): array
    {
        return ['many keys' => ['process', 40], 'one key' => ['process', 1], 'many keys, mode base' => ['base', 40],
            'one key, mode base' => ['base', 1]];
    }

    /** @dataProvider reloads */
    public function testAReloadInMidRequestLeavesNothing(string $mode, int $keys): void
    {
        $this->start(['MODE' => $mode]);
        $before = $this->numbers()['pid'];
        for ($i = 1; $i <= 3; $i++) {
            $this->assertPaid(self::ids(40, $keys), $keys === 1 ? 50 : 1000, function () use ($i): void {
                $this->waitUntilAllAreAsked($i * 40);
                $this->reload();
            });
        }
        $this->assertNothingIsLeft();
        Wait::until(fn (): bool => $this->numbers()['pid'] !== $before, 'the new workers', 60);
        $this->assertNoWarnings();
    }

    /** @dataProvider reloads */
    public function testWorkersThatAreReplacedLeaveNothing(string $mode, int $keys): void
    {
        $this->start(['MODE' => $mode, 'MAX_REQUEST' => '40']);
        for ($i = 0; $i < 20; $i++) {
            $ids = self::ids(50, $keys);
            $answers = $this->pay($ids, 2);
            if ($mode === 'process') { /* else Swoole resets connections whose requests it has not begun */
                $this->assertSame(self::paid($ids), $answers);
            }
        }
        $this->assertSame($this->logged('[NOTICE] asked to pay n'), $this->logged('[NOTICE] paid n'));
        $this->assertNothingIsLeft();
        $this->assertNoWarnings();
    }

    /** @dataProvider reloads */
    public function testTermInMidRequestLetsTheRequestsEnd(string $mode, int $keys): void
    {
        $this->start(['MODE' => $mode]);
        $ids = self::ids(20, $keys);
        $answers = $this->pay($ids, 200, function (): void {
            $this->waitUntilAllAreAsked(20);
            \proc_terminate($this->server, \SIGTERM);
        });
        Wait::until(fn (): bool => !$this->isRunning(), 'the server to end', 60);
        $this->assertNothingIsLeft();
        $this->assertNoWarnings();
        $this->assertSame(20, $this->logged('[NOTICE] paid n'));
        if ($mode === 'base') { /* else Swoole closes all connections at once */
            $this->assertSame(self::paid($ids), $answers);
        }
    }

    /** @return array<string, array{string, string, string}> */
    public static function mistakes(): array
    {
        return ['a generator' => ["#[WithLock('x')]", 'yield 1;', '::lines is a generator'],
            'a TTL' => ["#[WithLock('x', ttlMs: 5)]", 'return 1;', '::lines: ttlMs is "5"; allowed: 20 to'],
            'a cluster' => ["#[WithLock('x', cluster: 'nope')]", 'return 1;', '::lines: there is no cluster "nope"'],
            'a pool' => ["#[RedLockAnnotation('x', ['nope'])]", 'return 1;', '::lines: pools nope: '],
        ];
    }

    /** @dataProvider mistakes */
    public function testWhatCanNeverWorkStopsTheBoot(string $attribute, string $body, string $words): void
    {
        $class = 'Mistake' . \bin2hex(\random_bytes(4)); /* Hyperf caches what it found by class and second */
        $file = "$this->app/app/Service/$class.php";
        \file_put_contents($file, "<?php\nnamespace App\Service;\nuse Redlock\Hyperf\Annotation\WithLock;\n"
            . "use RedlockHyperf\Annotation\RedLockAnnotation;\n"
            . "class $class { $attribute public function lines(): mixed { $body } }\n");
        try {
            $this->launch([]);
            Wait::until(fn (): bool => !$this->isRunning(), 'the boot to stop', 60);
        } finally {
            \unlink($file);
        }
        $this->assertStringContainsString("App\\Service\\$class$words", \file_get_contents($this->log()));
    }

    public function testNodesComeFromTheEnvironmentWithoutAConfigurationFile(): void
    {
        $file = "$this->app/config/autoload/redlock.php";
        \rename($file, "$file.aside");
        try {
            $this->start();
        } finally {
            \rename("$file.aside", $file);
        }
        $this->assertPaid(['n1'], 2);
    }

    /** What Swoole has not handed to a coroutine yet, a worker that ends may drop. */
    private function waitUntilAllAreAsked(int $requests): void
    {
        Wait::until(fn (): bool => $this->logged('[NOTICE] asked to pay n') === $requests, 'the requests to arrive');
    }

    private function logged(string $words): int
    {
        return \substr_count(\file_get_contents($this->log()), $words);
    }

    /** Workers come and go without a word; that a node was silent for a while is true of a busy machine. */
    private function assertNoWarnings(): void
    {
        $this->assertSame([], \array_values(\preg_grep('/redlock: (?!node_silent )|Exception/', \file($this->log()))));
    }
}
