<?php

/**
 * What the library costs over the thinnest program of the same runtime on the same client, as JSON: what php_rows.py
 * calls. Chunks of both take turns in one process, and each pair of chunks gives one difference.
 *     php bench/php_over.php SHAPE NODES [MILLISECONDS]
 * SHAPE: blocking, run (run() with a new lock each, over native calls on a new handle each), fiber, swoole.
 */

declare(strict_types=1);

require \dirname(__DIR__) . '/php/lib/tests/bootstrap.php';

use Redlock\Client;
use Redlock\Tests\StreamSelectLoop;
use Redlock\Native;
use Swoole\Coroutine;
use Swoole\Event;

const CHUNK = 20;

function nativeOf(Client $client): Native\Client
{
    return (static fn (Client $client): Native\Client => $client->native)->bindTo(null, Client::class)($client);
}

function failed(Native\Lock $lock): RuntimeException
{
    return new RuntimeException(redlock_status_name($lock->status()));
}

/** The thinnest blocking program: two calls, and a slice to wait for signals where they take long. */
function bareBlocking(Native\Lock $lock): Closure
{
    return static function () use ($lock): void {
        for ($i = 0; $i < CHUNK; $i++) {
            $lock->run(REDLOCK_ACQUIRE, -2, 1000) === REDLOCK_OK || throw failed($lock);
            $lock->run(REDLOCK_RELEASE, 0, 1000) === REDLOCK_OK || throw failed($lock);
        }
    };
}

function bareRun(Native\Client $native, Closure $body): Closure
{
    return static function () use ($native, $body): void {
        for ($i = 0; $i < CHUNK; $i++) {
            $lock = new Native\Lock($native, 'bench:run', ['renew' => true]);
            $lock->run(REDLOCK_ACQUIRE, -2, 1000) === REDLOCK_OK || throw failed($lock);
            $body($lock);
            $lock->run(REDLOCK_RELEASE, 0, 1000) === REDLOCK_OK || throw failed($lock);
        }
    };
}

/** One Fiber, one stream, no bookkeeping. */
function bareFiber(Native\Client $native, Native\Lock $lock): Closure
{
    $stream = fopen('php://fd/' . $native->fd(), 'r');
    return static function () use ($native, $lock, $stream): void {
        $fiber = new Fiber(static function () use ($lock): void {
            for ($i = 0; $i < CHUNK; $i++) {
                $lock->start(REDLOCK_ACQUIRE | REDLOCK_AT_ONCE, -2, 1) === REDLOCK_OK || throw failed($lock);
                do {
                    Fiber::suspend();
                } while (($status = $lock->status()) === REDLOCK_PENDING);
                $status === REDLOCK_OK || throw failed($lock);
                $lock->start(REDLOCK_RELEASE | REDLOCK_AT_ONCE, 0, 1) === REDLOCK_OK || throw failed($lock);
                do {
                    Fiber::suspend();
                } while (($status = $lock->status()) === REDLOCK_PENDING);
                $status === REDLOCK_OK || throw failed($lock);
            }
        });
        for ($fiber->start(); !$fiber->isTerminated();) {
            $read = [$stream];
            $write = $except = null;
            stream_select($read, $write, $except, null);
            for ($tag = $native->advance(); $tag !== null; $tag = $native->next()) {
                $fiber->resume();
            }
        }
    };
}

/** One coroutine and the descriptor in Swoole's loop for the whole chunk. */
function bareSwoole(Native\Client $native, Native\Lock $lock): Closure
{
    $fd = $native->fd();
    return static function () use ($native, $lock, $fd): void {
        $me = Coroutine::getCid();
        Event::add($fd, static function () use ($native, $me): void {
            for ($tag = $native->advance(); $tag !== null; $tag = $native->next()) {
                Coroutine::resume($me);
            }
        }, null, SWOOLE_EVENT_READ);
        for ($i = 0; $i < CHUNK; $i++) {
            $lock->start(REDLOCK_ACQUIRE | REDLOCK_AT_ONCE, -2, 1) === REDLOCK_OK || throw failed($lock);
            do {
                Coroutine::suspend();
            } while (($status = $lock->status()) === REDLOCK_PENDING);
            $status === REDLOCK_OK || throw failed($lock);
            $lock->start(REDLOCK_RELEASE | REDLOCK_AT_ONCE, 0, 1) === REDLOCK_OK || throw failed($lock);
            do {
                Coroutine::suspend();
            } while (($status = $lock->status()) === REDLOCK_PENDING);
            $status === REDLOCK_OK || throw failed($lock);
        }
        Event::del($fd);
    };
}

/** @return Closure(): void a chunk of the library */
function library(Closure $cycle): Closure
{
    return static function () use ($cycle): void {
        for ($i = 0; $i < CHUNK; $i++) {
            $cycle();
        }
    };
}

/** @return array{float, float} time of a cycle, and CPU time of this process in it */
function us(Closure $chunk): array
{
    [$begin, $cpu] = [hrtime(true), cpuUs()];
    $chunk();
    return [(hrtime(true) - $begin) / 1000 / CHUNK, (cpuUs() - $cpu) / CHUNK];
}

function cpuUs(): float
{
    $usage = getrusage();
    return ($usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec']) * 1e6 + $usage['ru_utime.tv_usec']
        + $usage['ru_stime.tv_usec'];
}

/** Pairs in turns, the first fifth of the time is warming up. */
function measure(int $milliseconds, Closure $mine, Closure $bare, Closure $between): void
{
    $begun = hrtime(true);
    $costs = $mines = $bares = $cpu = [];
    for ($number = 0; ($passed = hrtime(true) - $begun) < $milliseconds * 1e6 || $costs === []; $number++) {
        $times = [];
        foreach ($number % 2 ? ['mine', 'bare'] : ['bare', 'mine'] as $which) {
            $times[$which] = us($which === 'mine' ? $mine : $bare);
            $between();
        }
        if ($passed > $milliseconds * 2e5) {
            [$costs[], $mines[], $bares[], $cpu[]] = [$times['mine'][0] - $times['bare'][0], $times['mine'][0],
                $times['bare'][0], $times['mine'][1] - $times['bare'][1]];
        }
    }
    $median = static function (array $values): float {
        sort($values);
        return $values[intdiv(count($values), 2)];
    };
    echo json_encode(['pairs' => count($costs), 'cost_us' => $median($costs), 'cpu_cost_us' => $median($cpu),
        'mine_us' => $median($mines), 'bare_us' => $median($bares)]), "\n";
}

if ($argc < 3) {
    fwrite(STDERR, "php_over.php: SHAPE NODES [MILLISECONDS]\n");
    exit(64);
}
[, $shape, $nodes] = $argv;
$milliseconds = (int) ($argv[3] ?? 1000);
$loop = $shape === 'fiber' ? new StreamSelectLoop() : null;
$client = Client::connect($nodes, loop: $loop);
$native = nativeOf($client);
$lock = $client->lock('bench:mine');
$bareLock = new Native\Lock($native, 'bench:bare', []);
$cycle = static function () use ($lock): void {
    $lock->acquire()->release();
};
$nothing = static fn () => null;
$untilTheLibraryHasLeft = static function () use ($native): void { /* a descriptor is in Swoole's loop once */
    while (Event::isset($native->fd(), SWOOLE_EVENT_READ)) {
        Coroutine::sleep(0.002);
    }
};
$shape === 'swoole' && Coroutine::set(['hook_flags' => SWOOLE_HOOK_SLEEP]);

match ($shape) {
    'blocking' => measure($milliseconds, library($cycle), bareBlocking($bareLock), $nothing),
    'run' => measure($milliseconds, library(static fn () => $client->lock('bench:run')->run($nothing)),
        bareRun($native, $nothing), $nothing),
    'fiber' => measure($milliseconds, static fn () => $loop->run([library($cycle)]),
        bareFiber($native, $bareLock), $nothing),
    'swoole' => Coroutine\run(static fn () => measure($milliseconds, library($cycle), bareSwoole($native, $bareLock),
        $untilTheLibraryHasLeft)),
};
