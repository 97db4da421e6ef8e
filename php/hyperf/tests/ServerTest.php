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
    /** @var resource bound, not listening: nobody else is given the port */
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
        $environment = ['REDLOCK_NODES' => self::cluster()->urls(), 'PORT' => (string) $this->port, 'WORKERS' => '2']
            + \getenv();
        $command = [\PHP_BINARY, ...\preg_split('/\s+/', \getenv('REDLOCK_HYPERF_PHP') ?: '-d memory_limit=1G'),
            'bin/hyperf.php', 'start'];
        $null = ['file', '/dev/null', 'w'];
        $this->server = \proc_open($command, [['file', '/dev/null', 'r'], $null, $null], $pipes, $this->app,
            $environment);
        Wait::until(fn (): bool => $this->answers(['/numbers']) === ['200' => 1], 'the server to answer', 60);
    }

    protected function tearDown(): void
    {
        if (isset($this->server)) {
            \proc_get_status($this->server)['running'] && \proc_terminate($this->server, \SIGTERM);
            Wait::until(fn (): bool => !\proc_get_status($this->server)['running'], 'the server to end', 30);
            \proc_close($this->server);
        }
    }

    /**
     * Asks all paths at once.
     *
     * @param list<string> $paths
     * @return array<string, int> status => how often
     */
    private function answers(array $paths, ?\Closure $meanwhile = null): array
    {
        $sockets = [];
        foreach ($paths as $path) {
            $socket = @\stream_socket_client("tcp://127.0.0.1:$this->port", $number, $message, 5);
            if ($socket !== false) {
                \fwrite($socket, "GET $path HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
                \stream_set_timeout($socket, 40);
                $sockets[] = $socket;
            }
        }
        $meanwhile === null || $meanwhile();
        $counts = ['none' => \count($paths) - \count($sockets)];
        foreach ($sockets as $socket) {
            $status = \explode(' ', (string) @\stream_get_contents($socket))[1] ?? 'none';
            $counts[$status] = ($counts[$status] ?? 0) + 1;
        }
        return \array_filter($counts);
    }

    private function masterPid(): int
    {
        return (int) \file_get_contents("$this->app/runtime/hyperf.pid");
    }

    public function test200RequestsOnOneKeyAndOnMany(): void
    {
        $this->assertSame(['200' => 200], $this->answers(\array_fill(0, 200, '/pay?id=one&ms=2')));
        $this->assertSame(['200' => 200],
            $this->answers(\array_map(static fn (int $i): string => "/pay?id=$i&ms=2", \range(1, 200))));
        $numbers = \json_decode(\file_get_contents("http://127.0.0.1:$this->port/numbers"), true);
        $this->assertSame(1, $numbers['most at once']);
        $this->assertNothingIsLeft();
    }

    public function testANodeKilledAndAnotherStoppedUnderLoad(): void
    {
        $nodes = self::cluster()->nodes;
        $paths = \array_map(static fn (int $i): string => '/pay?id=' . $i % 20 . '&ms=10', \range(1, 200));
        $this->assertSame(['200' => 200], $this->answers($paths, static function () use ($nodes): void {
            $nodes[0]->kill();
            $nodes[1]->stop();
        }));
    }

    public function testAReloadInMidRequest(): void
    {
        $paths = \array_map(static fn (int $i): string => '/pay?id=' . $i % 10 . '&ms=50', \range(1, 40));
        $this->assertSame(['200' => 40], $this->answers($paths, fn () => \posix_kill($this->masterPid(), \SIGUSR1)));
        $this->assertNothingIsLeft();
        Wait::until(fn (): bool => $this->answers(['/pay?id=after&ms=1']) === ['200' => 1], 'the new workers');
    }

    public function testTermInMidRequestLeavesNothingForLong(): void
    {
        $this->answers(\array_map(static fn (int $i): string => "/pay?id=term$i&ms=3000", \range(1, 10)),
            function (): void {
            Wait::until(static fn (): bool => \count(self::cluster()->keys()) === 10, 'the locks');
            \posix_kill($this->masterPid(), \SIGTERM);
        });
        Wait::until(fn (): bool => !\proc_get_status($this->server)['running'], 'the server to end', 30);
        $this->assertNothingIsLeft();
    }
}
