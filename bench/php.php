<?php

/**
 * Cycles (acquire, then release) through PHP, as JSON: what php.py calls.
 *     php bench/php.php SHAPE NODES [MILLISECONDS] [IN_FLIGHT]
 * SHAPE: blocking, run (run() with a new lock each), fiber, swoole; peers: phpredis, symfony (combined store).
 */

declare(strict_types=1);

require \dirname(__DIR__) . '/php/lib/tests/bootstrap.php';

use Redlock\Client;
use Redlock\Tests\StreamSelectLoop;

/** Times cycles until the time is over; the first tenth of it is warming up. */
final class Figures
{
    /** @var list<float> */
    private array $timesUs = [];
    private int $failed = 0;
    private int $begunNs;
    private float $cpuUs = 0;

    public function __construct(private readonly int $milliseconds)
    {
        $this->begunNs = \hrtime(true);
    }

    public function goesOn(): bool
    {
        return \hrtime(true) - $this->begunNs < $this->milliseconds * 1.1e6;
    }

    /** @param Closure(): bool $cycle */
    public function time(Closure $cycle): void
    {
        $begin = \hrtime(true);
        $done = $cycle();
        $end = \hrtime(true);
        if ($begin - $this->begunNs > $this->milliseconds * 1e5) {
            $this->cpuUs = $this->timesUs === [] ? -self::cpuUs() : $this->cpuUs;
            $this->timesUs[] = ($end - $begin) / 1000;
            $this->failed += (int) !$done;
        }
    }

    public function print(): void
    {
        \sort($this->timesUs);
        $count = \count($this->timesUs);
        $at = fn (float $share): float => $this->timesUs[(int) (($count - 1) * $share)];
        echo \json_encode([
            'cycles' => $count,
            'failed' => $this->failed,
            'cycles_per_s' => $count / ($this->milliseconds / 1000),
            'p50_us' => $at(0.5),
            'cpu_us' => ($this->cpuUs + self::cpuUs()) / $count,
            'p99_us' => $at(0.99),
            'memory_kb' => \memory_get_peak_usage() / 1024,
        ]), "\n";
    }

    private static function cpuUs(): float
    {
        $usage = \getrusage();
        return ($usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec']) * 1e6 + $usage['ru_utime.tv_usec']
            + $usage['ru_stime.tv_usec'];
    }
}

/** @return Closure(): bool one cycle on a resource of its own */
function redlockCycle(Client $client, int $number): Closure
{
    $lock = $client->lock("bench:$number");
    return static function () use ($lock): bool {
        ($lock->acquire() ?? $lock)->release(); /* before there were holds, acquire() returned nothing */
        return true;
    };
}

/** The loop that Redlock libraries for PHP make over phpredis: one node after the other. */
function phpredisCycle(array $servers, int $number): Closure
{
    $script = 'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end';
    return static function () use ($servers, $script, $number): bool {
        $token = \bin2hex(\random_bytes(20));
        $granted = 0;
        foreach ($servers as $server) {
            $granted += (int) $server->set("bench:$number", $token, ['NX', 'PX' => 10000]);
        }
        foreach ($servers as $server) {
            $server->eval($script, ["bench:$number", $token], 1);
        }
        return $granted > \intdiv(\count($servers), 2);
    };
}

function symfonyCycle(array $servers, int $number): Closure
{
    $stores = \array_map(static fn (Redis $server) => new Symfony\Component\Lock\Store\RedisStore($server), $servers);
    $store = new Symfony\Component\Lock\Store\CombinedStore($stores,
        new Symfony\Component\Lock\Strategy\ConsensusStrategy());
    $factory = new Symfony\Component\Lock\LockFactory($store);
    return static function () use ($factory, $number): bool {
        $lock = $factory->createLock("bench:$number", 10.0);
        $held = $lock->acquire();
        $lock->release();
        return $held;
    };
}

/** @return list<Redis> */
function servers(string $nodes): array
{
    return \array_map(static function (string $url): Redis {
        $server = new Redis();
        $server->connect(\parse_url($url, \PHP_URL_HOST), \parse_url($url, \PHP_URL_PORT));
        return $server;
    }, \explode(',', $nodes));
}

/** @param Closure(int): Closure $cycleOf */
function inFibers(StreamSelectLoop $loop, Figures $figures, int $count, Closure $cycleOf): void
{
    $loop->run(\array_map(
        static fn (int $number): Closure => static function () use ($figures, $cycleOf, $number): void {
        for ($cycle = $cycleOf($number); $figures->goesOn();) {
            $figures->time($cycle);
        }
        }, \range(1, $count)));
}

/** @param Closure(int): Closure $cycleOf */
function inCoroutines(Figures $figures, int $count, Closure $cycleOf): void
{
    Swoole\Coroutine::set(['hook_flags' => SWOOLE_HOOK_SLEEP]);
    Swoole\Coroutine\run(static function () use ($figures, $count, $cycleOf): void {
        for ($number = 1; $number <= $count; $number++) {
            Swoole\Coroutine::create(static function () use ($figures, $cycleOf, $number): void {
                for ($cycle = $cycleOf($number); $figures->goesOn();) {
                    $figures->time($cycle);
                }
            });
        }
    });
}

if ($argc < 3) {
    \fwrite(\STDERR, "php.php: SHAPE NODES [MILLISECONDS] [IN_FLIGHT]\n");
    exit(64);
}
[, $shape, $nodes] = $argv;
$figures = new Figures((int) ($argv[3] ?? 1000));
$count = (int) ($argv[4] ?? 1);
$loop = $shape === 'fiber' ? new StreamSelectLoop() : null;
$client = \in_array($shape, ['phpredis', 'symfony'], true) ? null : Client::connect($nodes, loop: $loop);

match ($shape) {
    'fiber' => inFibers($loop, $figures, $count, static fn (int $number): Closure => redlockCycle($client, $number)),
    'swoole' => inCoroutines($figures, $count, static fn (int $number): Closure => redlockCycle($client, $number)),
    'blocking' => (static function () use ($figures, $client): void {
        for ($cycle = redlockCycle($client, 1); $figures->goesOn();) {
            $figures->time($cycle);
        }
    })(),
    'run' => (static function () use ($figures, $client): void {
        while ($figures->goesOn()) {
            $figures->time(static fn (): bool => $client->lock('bench:1')->run(static fn (): bool => true));
        }
    })(),
    'phpredis', 'symfony' => (static function () use ($figures, $shape, $nodes): void {
        $cycle = $shape === 'phpredis' ? phpredisCycle(servers($nodes), 1) : symfonyCycle(servers($nodes), 1);
        while ($figures->goesOn()) {
            $figures->time($cycle);
        }
    })(),
};
$figures->print();
