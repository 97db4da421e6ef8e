<?php

declare(strict_types=1);

namespace Redlock\Tests;

final class FpmTest extends NodesTestCase
{
    private ?FpmServer $server = null;

    private function serve(int $workers, int $maxRequests = 0, int $controlTimeoutS = 0): FpmServer
    {
        $binary = \trim(
            (string) \shell_exec('command -v php-fpm' . \PHP_MAJOR_VERSION . '.' . \PHP_MINOR_VERSION
                . ' || command -v php-fpm'));
        if ($binary === '') {
            $this->markTestSkipped('php-fpm is not installed');
        }
        return $this->server = new FpmServer($binary, $workers, $maxRequests, $controlTimeoutS);
    }

    protected function tearDown(): void
    {
        $this->server?->close();
    }

    private function connect(): string
    {
        return self::connecting(\var_export(self::cluster()->urls(), true), clientName: $this->uniqueName());
    }

    public function testWorkersKeepTheirConnections(): void
    {
        $server = $this->serve(4);
        $pids = [];
        for ($i = 0; $i < 40; $i++) {
            $pids[] = $server->request($this->connect()
                . "\$client->lock('fpm:$i')->run(fn () => null); \$client->status('fpm:$i'); echo getmypid();");
        }
        $workers = \count(\array_unique($pids));
        $this->assertGreaterThan(0, $workers);
        $this->assertNotContains(null, $pids);
        $this->assertConnections($workers * 5); /* status() waited for all nodes, not for a majority only */
        $this->assertNothingIsLeft();
    }

    /** @dataProvider \Redlock\Tests\ProcessTest::endings */
    public function testWhatARequestHoldsEndsWithIt(string $ending): void
    {
        $output = $this->serve(1)->request($this->connect()
            . '$l = $client->lock("exit")->acquire(); echo "held"; @ob_end_flush(); flush(); ' . $ending);
        $this->assertStringStartsWith('held', (string) $output);
        $this->assertNothingIsLeft();
    }

    public function testTheLockOfAKilledWorkerLapses(): void
    {
        $server = $this->serve(2);
        $killed = $this->connect()
            . '$lock = $client->lock("killed", ttlMs: 8000, nodeTimeoutMs: 2000); $lock->acquire();'
            . 'posix_kill(getmypid(), 9);';
        $this->assertNull($server->request($killed));
        $this->assertSame(['killed'], \array_keys(self::cluster()->keys()));
        $waited = $this->connect() . '$client->lock("killed")->acquire(); echo "mine";';
        $this->assertSame('mine', $server->request($waited));
    }

    public function testWorkersThatAreReplacedLeaveNoConnections(): void
    {
        $server = $this->serve(2, 5);
        $pids = [];
        for ($i = 0; $i < 40; $i++) {
            $pids[] = $server->request($this->connect() . '$client->lock("max")->run(fn () => null); echo getmypid();');
        }
        $this->assertGreaterThan(4, \count(\array_unique($pids)));
        Wait::until(fn (): bool => self::cluster()->connections($this->uniqueName()) <= 10,
            'connections of ended workers to close');
        $this->assertNothingIsLeft();
    }

    public function testAReloadLetsRequestsEndWithinProcessControlTimeout(): void
    {
        $server = $this->serve(1, 0, 60);
        $flag = \sys_get_temp_dir() . '/' . $this->uniqueName();
        $socket = $server->ask($this->connect() . '$client->lock("reload")->run(function () { while (!file_exists('
            . \var_export($flag, true) . ')) { usleep(1000); clearstatcache(); } }); echo "done";');
        Wait::until(static fn (): bool => \count(self::cluster()->keys()) > 0, 'the request to lock');
        $server->reload();
        \touch($flag);
        $this->assertSame('done', FpmServer::answer($socket));
        \unlink($flag);
        $this->assertNothingIsLeft();
    }

    public function testWithoutNodesTheErrorSaysWhatFpmDoes(): void
    {
        $server = $this->serve(1);
        $output = $server->request(
            'try { Redlock\Client::connect(); } catch (ValueError $e) { echo $e->getMessage(); }');
        $this->assertStringContainsString('clear_env', $output);
    }

    public function testFibersAreRefusedWithWords(): void
    {
        $server = $this->serve(1);
        $output = $server->request(
            '$loop = new Redlock\Tests\StreamSelectLoop();'
            . '$client = Redlock\Client::connect("redis://127.0.0.1:1", loop: $loop);'
            . 'try { $loop->run([fn () => $client->lock("x")->acquire(0)]); }'
            . 'catch (RuntimeException $e) { echo $e->getMessage(); }');
        $this->assertStringContainsString('command line', $output);
    }
}
