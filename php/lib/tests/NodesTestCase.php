<?php

declare(strict_types=1);

namespace Redlock\Tests;

use PHPUnit\Framework\TestCase;
use Redlock\Client;

/** Tests on five real nodes, which all classes share and each test finds empty. */
abstract class NodesTestCase extends TestCase
{
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
        /* a TTL longer than any test waits: what is gone was deleted; and patience with a busy machine */
        $options += ['clientName' => $this->uniqueName(), 'ttlMs' => 30000, 'nodeTimeoutMs' => 2000];
        return Client::connect(self::cluster()->urls(), ...$options);
    }

    protected function uniqueName(): string
    {
        $test = \method_exists($this, 'name') ? $this->name() : $this->getName(false); /* PHPUnit 10 and 9 */
        return \substr(\strrchr(static::class, '\\') . "-$test", 1, 64);
    }

    protected function assertNothingIsLeft(): void
    {
        Wait::until(static fn (): bool => self::cluster()->keys() === [], 'the keys to go');
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
}
