<?php

declare(strict_types=1);

namespace Redlock\Tests;

/** Runs what the documents show, as it stands there: each block of PHP is here, or a test below fails. */
final class DocumentsTest extends NodesTestCase
{
    private const PAGES = ['docs/php.md', 'README.md', 'php/lib/README.md', 'php/hyperf/README.md',
        'docs/moving-from-hyperf-locks.md'];

    /** Blocks that leave bodies out as "...", or are for a framework that is not here: their code is compiled. */
    private const COMPILED = ['docs/php.md#Then the library', 'docs/php.md#Fibers', 'docs/php.md#Swoole',
        'docs/php.md#Laravel', 'docs/php.md#Hyperf', 'docs/php.md#OpenTelemetry', 'docs/php.md#OpenTelemetry 2',
        'php/hyperf/README.md#libredlock/hyperf', 'docs/moving-from-hyperf-locks.md#Moving from other Hyperf locks'];

    /** What a program of the reader has around the block. */
    private const BEFORE = <<<'PHP'
        <?php
        function say(string ...$words): bool { echo implode(' ', $words), "\n"; return true; }
        function chargeOrder(int $id) { return say("charged $id"); }
        function checkout(string $id) { return say("checked out $id"); }
        function buildReport() { return say('built'); }
        function sendReport() { return say('sent'); }
        function writeInvoice() { return say('written'); }
        function alert(string $text) { return say($text); }
        final class Dispatcher implements Psr\EventDispatcher\EventDispatcherInterface
        {
            public function dispatch(object $event): object
            {
                $event instanceof Redlock\Event\LockEvent && say($event::class);
                return $event;
            }
        }
        $nodes = explode(',', getenv('REDLOCK_NODES'));
        $id = '7';
        $dispatcher = new Dispatcher();
        PHP;

    /** Block => what it prints, and what the reader writes behind it. */
    private const RUN = [
        'docs/php.md#A script' => "charged 42\nbuilt\nsent\n",
        'docs/php.md#A script 2' => ["locked\n", '$lock = Redlock\Client::connect($nodes)->lock("x", ttlMs: 30000);'
            . '$lock->run(function () { say("locked"); exec("kill " . getmypid()); say("went on"); });'],
        'README.md#PHP' => "charged 42\nbuilt\n",
        'php/lib/README.md#libredlock/redlock' => "charged 42\nbuilt\n",
        'docs/php.md#FPM' => "checked out 7\n",
        'docs/php.md#Symfony' => "written\n",
        'docs/php.md#Long locks' => ["built\n",
            '$left = $long->status($today->resource())->remainingMs; $left > 39e6 || say("$left ms"); '
            . '$long->remove($today->resource());'],
        'docs/php.md#Events' => ["Redlock\\Event\\Acquired\nRedlock\\Event\\Released\n",
            '$client->lock("x")->run(fn () => 1);'],
        'docs/php.md#Unit tests without nodes' => "built\n",
    ];

    /** @return array<string, string> code by page and heading, numbered under one heading */
    private static function blocks(): array
    {
        $blocks = [];
        foreach (self::PAGES as $page) {
            $heading = '';
            $text = (string) \file_get_contents(\dirname(__DIR__, 3) . "/$page");
            \preg_match_all('/^#+ ([^\n]+)$|^```(\w*)\n(.*?)^```$/ms', $text, $found, \PREG_SET_ORDER);
            foreach ($found as $one) {
                if (!isset($one[2])) {
                    $heading = $one[1];
                    continue;
                }
                for ($name = "$page#$heading", $i = 2; isset($blocks[$name]); $i++) {
                    $name = "$page#$heading $i";
                }
                $blocks += $one[2] === 'php' ? [$name => $one[3]] : [];
            }
        }
        return $blocks;
    }

    public function testEachBlockIsRunOrCompiled(): void
    {
        $this->assertEqualsCanonicalizing(\array_keys(self::blocks()), [...\array_keys(self::RUN), ...self::COMPILED]);
    }

    /** @dataProvider programs */
    public function testABlockRuns(string $block, string $prints, string $behind): void
    {
        self::cluster()->bootstrap(maxTtlMs: 86_400_000, keyPrefix: 'long:');
        $code = \preg_replace(['~\[(?:\'redis://[^\']*\'(?:, )?)+\]~', '~^<\?php~', '~^require .*~m'],
            ['$nodes', '', ''], self::blocks()[$block]);
        $this->assertSame($prints, self::php(self::BEFORE . "\n$code\n$behind"));
        $this->assertNothingIsLeft();
    }

    /** @return array<string, array{string, string, string}> */
    public static function programs(): array
    {
        $cases = [];
        foreach (self::RUN as $block => $wanted) {
            [$prints, $behind] = (array) $wanted + [1 => ''];
            $cases[$block] = [$block, $prints, $behind];
        }
        return $cases;
    }

    /** @dataProvider compiled */
    public function testABlockCompiles(string $block): void
    {
        $code = \str_replace('{ ... }', '{ }', self::blocks()[$block]);
        $this->assertStringStartsWith('No syntax errors', self::php("<?php\n$code", '-l'));
    }

    /** @return array<string, array{string}> */
    public static function compiled(): array
    {
        return \array_combine(self::COMPILED, \array_map(static fn (string $block): array => [$block], self::COMPILED));
    }

    /** What the program prints, errors too. */
    private static function php(string $code, string ...$flags): string
    {
        $file = \tempnam(\sys_get_temp_dir(), 'redlock');
        \file_put_contents($file, $code);
        $extension = (string) \getenv('REDLOCK_PHP_EXTENSION');
        $process = \proc_open([\PHP_BINARY, '-n', '-d', "extension=$extension", '-d', 'zend.assertions=1', '-d',
            'auto_prepend_file=' . __DIR__ . '/bootstrap.php', ...$flags, $file],
            [1 => ['pipe', 'w'], 2 => ['redirect', 1]], $pipes,
            env_vars: ['REDLOCK_NODES' => self::cluster()->urls()] + \getenv());
        $output = (string) \stream_get_contents($pipes[1]);
        \proc_close($process);
        \unlink($file);
        return $output;
    }
}
