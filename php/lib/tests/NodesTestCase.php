<?php

declare(strict_types=1);

namespace Redlock\Tests;

use PHPUnit\Framework\TestCase;
use Redlock\Client;

/** Tests on five real nodes, which all classes share; each test finds no keys there but the guard's markers. */
abstract class NodesTestCase extends TestCase
{
    /** Patience with a busy machine; and a TTL longer than a test waits for keys to go: what is gone was deleted. */
    protected const PATIENCE = ['ttlMs' => 30000, 'waitMs' => 30000, 'nodeTimeoutMs' => 2000,
        'connectTimeoutMs' => 20000];
    private const KEYS_LIMIT_S = 20.0;

    private static ?Cluster $cluster = null;

    protected static function cluster(): Cluster
    {
        return self::$cluster ??= new Cluster();
    }

    protected function setUp(): void
    {
        self::cluster()->reset();
    }

    /** A client of its own for each test, so that one test's node state does not meet the next. */
    protected function client(mixed ...$options): Client
    {
        $options += ['clientName' => $this->uniqueName()] + self::PATIENCE;
        return Client::connect(self::cluster()->urls(), ...$options);
    }

    /** Code of another process that connects as client() does; $nodes is code too. */
    protected static function connecting(string $nodes, mixed ...$options): string
    {
        return "\$client = Redlock\Client::connect($nodes, ..." . \var_export($options + self::PATIENCE, true) . ');';
    }

    /** @return array<string, mixed> the same by the names of the table */
    protected function config(): array
    {
        return ['nodes' => self::cluster()->urls(), 'client_name' => $this->uniqueName(), 'ttl_ms' => 30000,
            'wait_ms' => 30000, 'node_timeout_ms' => 2000, 'connect_timeout_ms' => 20000];
    }

    protected function uniqueName(): string
    {
        $test = \method_exists($this, 'name') ? $this->name() : $this->getName(false); /* PHPUnit 10 and 9 */
        return \substr(\strrchr(static::class, '\\') . "-$test", 1, 64);
    }

    protected function assertNothingIsLeft(): void
    {
        $keys = [];
        try {
            Wait::until(static function () use (&$keys): bool {
                return ($keys = self::cluster()->keys()) === [];
            }, 'the keys to go', self::KEYS_LIMIT_S);
        } catch (\RuntimeException) {
            $this->assertSame([], $keys, 'keys and on how many nodes');
        }
        $this->addToAssertionCount(1);
    }

    /** A node that lags behind hears of a connection, or of its end, later than the others. */
    protected function assertConnections(int $count): void
    {
        Wait::until(fn (): bool => self::cluster()->connections($this->uniqueName()) === $count,
            "$count connections");
        $this->addToAssertionCount(1);
    }

    /** Runs $body in a child; its output comes back, and an error fails the test. */
    protected function inChild(\Closure $body): string
    {
        [$ours, $theirs] = \stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0);
        $pid = \pcntl_fork();
        if ($pid === 0) {
            try {
                \fwrite($theirs, (string) $body());
            } catch (\Throwable $failure) {
                \fwrite($theirs, 'failed: ' . $failure);
            }
            \fclose($theirs);
            \posix_kill(\posix_getpid(), \SIGKILL); /* no shutdown of PHPUnit in the child */
        }
        \fclose($theirs);
        $output = \stream_get_contents($ours);
        \pcntl_waitpid($pid, $status);
        $this->assertStringStartsNotWith('failed: ', $output);
        return $output;
    }

    protected static function residentKb(): int
    {
        \preg_match('/VmRSS:\s+(\d+)/', \file_get_contents('/proc/self/status'), $m);
        return (int) $m[1];
    }
}
