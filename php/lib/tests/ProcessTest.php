<?php

declare(strict_types=1);

namespace Redlock\Tests;

use Redlock\Client;
use Redlock\Driver\AroundDriver;
use Redlock\Driver\Driver;
use Redlock\Native;
use Redlock\Testing\Handle;

/** Signals, fork and exit. */
final class ProcessTest extends NodesTestCase
{
    /** The file that is PHP's own log. */
    private string $log;

    public function testASignalHandlerRunsWhileWaiting(): void
    {
        $client = $this->client();
        $holder = $client->lock('signal');
        $holder->acquire();
        $handled = 0;
        \pcntl_async_signals(true);
        \pcntl_signal(\SIGALRM, static function () use (&$handled, $holder): void {
            $handled++;
            $holder->release();
        });
        \pcntl_alarm(1);
        $client->lock('signal')->acquire();
        $this->assertSame(1, $handled);
    }

    /** In another object, as of a helper that takes the lock of its caller. */
    public function testAWaitForALockOfOnesOwnIsWarnedOfOnce(): void
    {
        $log = new MemoryLogger();
        $client = Client::connect(self::cluster()->urls(), $log, ...self::PATIENCE);
        $client->lock('mine')->run(function () use ($client, $log): void {
            $this->assertFalse($client->lock('mine')->tryAcquire(2500));
            $warnings = \array_values(\array_filter($log->records,
                static fn (array $record): bool => \str_contains($record[1], 'itself holds')));
            $warned = \array_map(static fn (array $record): array => [$record[0], $record[2]['resource']], $warnings);
            $this->assertSame(\PHP_ZTS ? [] : [['warning', 'mine']], $warned, 'with threads it may be another one');
            $this->assertFalse($client->lock('mine')->tryAcquire(500));
        });
        $before = \count($log->records);
        $this->inChild(static function (): void {
            $other = Client::connect(self::cluster()->urls(), ...self::PATIENCE)->lock('theirs');
            $other->acquire();
            $other->detach();
        });
        $this->assertFalse($client->lock('theirs')->tryAcquire(1500));
        $this->assertCount($before, $log->records, 'another process holds that one');
        $gpu = $client->lock('gpu', permits: 2);
        $permits = [$gpu->acquire(), $gpu->acquire()];
        $this->assertFalse($gpu->tryAcquire(1500));
        $this->assertCount($before, $log->records, 'another permit may come free');
        unset($permits);
    }

    public function testWithoutALoggerTheWarningGoesToPhpsLog(): void
    {
        $output = $this->php(self::connecting('$argv[1]') . '$lock = $client->lock("mine"); $lock->acquire();'
            . 'var_dump($client->lock("mine")->tryAcquire(4000) !== false);', self::cluster()->urls(),
            $this->logOption());
        $this->assertStringContainsString('bool(false)', $output);
        $words = 'redlock: "mine" waits for a lock that this process itself holds';
        $this->assertSame(\PHP_ZTS ? 0 : 1, \substr_count($this->logged(), $words));
    }

    /**
     * @testWith ["getmypid,gethostname"]
     *           ["error_log"]
     */
    public function testAWaitEndsAlsoWherePhpsFunctionsAreDisabled(string $disabled): void
    {
        $output = $this->php(self::connecting('$argv[1]') . '$hold = $client->lock("mine")->acquire();'
            . 'var_dump($client->lock("mine")->tryAcquire(2500));', self::cluster()->urls(),
            [...$this->logOption(), '-d', "disable_functions=$disabled"]);
        $this->assertSame("bool(false)\n", $output);
    }

    /** @dataProvider newNodes */
    public function testAWaitForQuarantinedNodesWarnsWithoutALogger(int $nodes): void
    {
        self::cluster()->makeNew();
        $urls = \array_slice(\array_column(self::cluster()->nodes, 'url'), 0, $nodes);
        $output = $this->php(self::connecting('$argv[1]') . 'try { $client->lock("new")->acquire(4000); }'
            . 'catch (Redlock\Exception\NoQuorumException) { echo "refused"; }', \implode(',', $urls),
            $this->logOption());
        $logged = $this->logged();
        $this->assertMatchesRegularExpression("/redlock: \"new\" waits: 0 of $nodes nodes granted \"new\", .*"
            . 'new, or may have lost keys.*; wait; if no majority votes .*run `redlock bootstrap`\n/',
            $logged);
        $this->assertMatchesRegularExpression('/ for another \d\d\.\d s/', $logged);
        $this->assertSame([1, 'refused'], [\substr_count($logged, ' waits: '), $output]);
    }

    public static function newNodes(): array
    {
        return ['one' => [1], 'three' => [3]];
    }

    public function testAnExceptionOfAHandlerEndsTheWaitAndLeavesNoKey(): void
    {
        $client = $this->client();
        $holder = $client->lock('signal');
        $holder->acquire();
        \pcntl_async_signals(true);
        \pcntl_signal(\SIGALRM, static fn () => throw new \DomainException('interrupted'));
        try {
            \pcntl_alarm(1);
            $client->lock('signal')->acquire(waitMs: -1);
            $this->fail('nothing interrupted');
        } catch (\DomainException) {
            $this->assertTrue($holder->isHeld());
        }
        $holder->release();
        $this->assertNothingIsLeft();
    }

    public function testAHandlerThatThrowsJustBeforeTheReleaseLeavesNoKey(): void
    {
        $drive = static fn (Driver $driver): Driver => new class ($driver) extends AroundDriver {
            private bool $throws = true;

            public function run(Native\Lock|Handle $lock, int $operation, int $arg): int
            {
                if ($operation === \REDLOCK_RELEASE && $this->throws) {
                    $this->throws = false;
                    throw new \DomainException('interrupted');
                }
                return $this->driver->run($lock, $operation, $arg);
            }
        };
        $lock = $this->client()->lock('handler')->remade([], $drive);
        try {
            $lock->run(static fn (): string => 'done');
            $this->fail('nothing interrupted');
        } catch (\DomainException) {
            $this->assertFalse($lock->isHeld());
        }
        $this->assertNothingIsLeft();
    }

    /** @dataProvider endings */
    public function testWhatIsHeldAtTheEndOfAScriptIsReleased(string $ending, int $code, string $said = ''): void
    {
        $script = self::connecting('$argv[1]') . '$l = $client->lock("exit")->acquire(); echo $l->token(), " "; '
            . $ending;
        $output = $this->php($script, self::cluster()->urls(), [], $code);
        $this->assertMatchesRegularExpression("/^[0-9a-f]{40} $said$/", $output);
        $this->assertNothingIsLeft();
    }

    public static function endings(): array
    {
        $releaser = 'class D { public $h; function __destruct() { $this->h->release(); echo "released"; } }'
            . '$d = new D();';
        return [
            'end of script' => ['', 0],
            'exit' => ['exit(3);', 3],
            'uncaught exception' => ['throw new Exception("e");', 255],
            'fatal error' => ['undefined_function();', 255],
            'out of memory' => ['ini_set("memory_limit", "8M"); $x = str_repeat("x", 100000000);', 255],
            'in a function' => ['function f($l) { exit; } f($l);', 0],
            'in a body' => ['$client->lock("body")->run(fn () => exit(3));', 3],
            'out of memory in a body' => ['ini_set("memory_limit", "8M");'
                . '$client->lock("body")->run(fn () => str_repeat("x", 100000000));', 255],
            'by a destructor' => ["$releaser \$d->h = \$client->lock('body')->acquire(); unset(\$client);", 0,
                'released'],
            'by a destructor in a body' => ["$releaser \$client->lock('body')->run(function (\$h) use (\$d) {"
                . ' $d->h = $h; exit; });', 0, 'released'],
            'of a Fiber in a body' => ['$f = new Fiber(fn () => $client->lock("body")->run(fn () => Fiber::suspend()));'
                . '$f->start(); exit;', 0],
        ];
    }

    public function testALongLockWhoseProcessEndsIsWarnedOfOnce(): void
    {
        $script = self::connecting('$argv[1]') . '$store = new Redlock\Symfony\RedlockStore($client);'
            . '$factory = new Symfony\Component\Lock\LockFactory($store);'
            . '$short = $factory->createLock("short", 20, false); $short->acquire();'
            . '$long = $factory->createLock("long", 300, false); var_dump($long->acquire()); exit;';
        $this->assertSame("bool(true)\n", $this->php($script, self::cluster()->urls(), $this->logOption()));
        $logged = $this->logged();
        $this->assertMatchesRegularExpression('/redlock: "long" ends in (2\d|30)\.\d s, but was wanted for another '
            . '(29\d|300)\.\d s: its process ends or has dropped it/', $logged);
        $this->assertSame(1, \substr_count($logged, 'redlock:'));
        $this->assertSame(['long', 'short'], \array_intersect(['long', 'short'], \array_keys(self::cluster()->keys())));
    }

    /** Each of them waits for the node that is stopped: one after the other they take 40 s. */
    public function testClientsLeaveTogetherAtTheEndOfAProcess(): void
    {
        $node = self::cluster()->nodes[0];
        $script = '';
        foreach (\range(1, 4) as $i) {
            $script .= self::connecting('$argv[1]', clientName: "leaver$i", exitDrainMs: 10000)
                . "\$client->status('x'); \$lock = \$client->lock('left:$i'); \$lock->acquire();"
                . "\$all[] = [\$client, \$lock]; ";
        }
        $begun = \hrtime(true);
        $this->assertSame('held', $this->php("$script posix_kill({$node->pid()}, SIGSTOP); echo 'held';",
            self::cluster()->urls()));
        $this->assertGreaterThan(9e9, \hrtime(true) - $begun);
        $this->assertLessThan(30e9, \hrtime(true) - $begun);
        $node->cont();
        $this->assertNothingIsLeft();
    }

    public function testLocksWorkUnderTheJitOfOpcache(): void
    {
        $script = self::connecting('$argv[1]')
            . 'for ($i = 0; $i < 300; $i++) { $client->lock("jit:$i")->run(fn ($l) => $l->isHeld() || exit(1)); }'
            . 'echo "fine";';
        $jit = [];
        $settings = ['enable_cli=1', 'jit=tracing', 'jit_buffer_size=32M', 'jit_hot_func=2', 'jit_hot_loop=2'];
        foreach ($settings as $setting) {
            \array_push($jit, '-d', "opcache.$setting");
        }
        $this->assertSame('fine', $this->php($script, self::cluster()->urls(), $jit));
    }

    /** @return list<string> PHP's own log goes to a file: PHP with threads cannot open /dev/stdout if that is a pipe */
    private function logOption(): array
    {
        $this->log = \tempnam(\sys_get_temp_dir(), 'redlock');
        return ['-d', "error_log=$this->log"];
    }

    private function logged(): string
    {
        $logged = (string) \file_get_contents($this->log);
        \unlink($this->log);
        return $logged;
    }

    /** @param list<string> $options */
    private function php(string $script, string $argument, array $options = [], ?int $code = null): string
    {
        $bootstrap = \var_export(__DIR__ . '/bootstrap.php', true);
        $command = [\PHP_BINARY, '-d', 'display_errors=stderr', ...$this->extensionOption(), ...$options, '-r',
            "require $bootstrap; $script", $argument];
        $process = \proc_open($command, [1 => ['pipe', 'w'], 2 => ['file', '/dev/null', 'w']], $pipes);
        $output = \stream_get_contents($pipes[1]);
        do {
            $status = \proc_get_status($process);
        } while ($status['running'] && \usleep(1000) === null);
        \proc_close($process);
        $this->assertFalse($status['signaled'], "ended by signal {$status['termsig']}");
        $this->assertSame($code ?? $status['exitcode'], $status['exitcode']);
        return $output;
    }

    /** @return list<string> how this process was given the extension */
    private function extensionOption(): array
    {
        $path = \getenv('REDLOCK_PHP_EXTENSION');
        return $path === false ? [] : ['-d', "extension=$path"];
    }
}
