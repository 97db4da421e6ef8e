<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests;

use Hyperf\AsyncQueue\Annotation\AsyncQueueMessage;
use Hyperf\Di\Annotation\AnnotationCollector;
use Hyperf\Task\Annotation\Task;
use PHPUnit\Framework\TestCase;
use Redlock\Exception\InvalidOptionException;
use Redlock\Exception\NoQuorumException;
use Redlock\Hold;
use Redlock\Hyperf\BootCheck;
use Redlock\Hyperf\CancelOnLoss;
use Redlock\Hyperf\Locks;
use Redlock\Hyperf\LockSpec;
use RedlockHyperf\Internal\Compatibility;

require_once __DIR__ . '/hyperf.php';

/** What stops the boot. No node is there, and none is asked. */
final class BootCheckTest extends TestCase
{
    private Locks $locks;

    protected function setUp(): void
    {
        $this->locks = new Locks([
            'default' => ['nodes' => []], /* of the environment, which need not be there yet */
            'short' => ['nodes' => ['r1'], 'max_ttl_ms' => 20000],
            'wrong' => ['nodes' => ['r1'], 'waits' => 5],
            'away' => ['nodes' => ['nowhere']],
            'parts' => ['nodes' => [['host' => 'redis-1.invalid', 'auth' => 'secret']]],
            'long' => ['nodes' => ['redis://redis-1.invalid', 'unix:///r.sock?db=1&max_ttl=5m']],
            'typo' => ['nodes' => ['redis://redis-1.invalid', 'redis://redis-2.invalid:port']],
            'memory' => ['nodes' => ['memory://'], 'shared' => true, 'fence' => true],
        ], ['r1' => ['host' => 'redis-1.invalid'], 'set' => ['host' => 'r', 'sentinel' => ['enable' => true]],
            'url' => 'redis://redis-1.invalid']);
    }

    private function check(LockSpec $spec, string $method = 'pay'): void
    {
        (new BootCheck($this->locks))->method(Shop::class, new \ReflectionMethod(Shop::class, $method), [$spec]);
    }

    public function testWhatCanWorkIsPassed(): void
    {
        $begun = \hrtime(true);
        $this->check(new LockSpec('order:#{id}'));
        $this->check(new LockSpec('order:#{id}', ['ttl_ms' => 25000, 'wait_ms' => -1, 'retry_delay_ms' => 50,
            'renew' => false, 'max_hold_ms' => -1, 'outage_wait_ms' => -1], onBusy: 'later', onNoQuorum: 'told'));
        $this->check(new LockSpec('order', ['ttl_ms' => 20000], 'short'));
        $this->check(new LockSpec('order', ['ttl_ms' => 300000], 'long'));
        $this->check(new LockSpec('order', cluster: 'memory'));
        $this->check(new LockSpec('order', pools: ['r1']));
        $this->check(new LockSpec('order', hold: 'hold'), 'shut');
        $this->check(new LockSpec(['order:#{id}', 'stock:#{this.id}']));
        foreach (['lines', 'append'] as $unlocked) {
            (new BootCheck($this->locks))->method(Shop::class, new \ReflectionMethod(Shop::class, $unlocked), []);
        }
        $this->assertLessThan(10.0, (\hrtime(true) - $begun) / 1e9, 'nothing may be waited for');
    }

    /** @dataProvider refused */
    public function testWhatCanNeverWorkIsRefused(string $words, LockSpec $spec, string $method = 'pay'): void
    {
        $this->expectException(InvalidOptionException::class);
        $this->expectExceptionMessageMatches('/^' . \preg_quote(Shop::class . "::$method", '/') . '.*'
            . \preg_quote($words, '/') . '/');
        $this->check($spec, $method);
    }

    public static function refused(): array
    {
        return [
            'a generator' => ['is a generator', new LockSpec('lines'), 'lines'],
            'the object of a static method' => ['the method has no parameter $this', new LockSpec('#{this.id}'),
                'open'],
            'a parameter by reference' => ['takes $lines by reference, and Hyperf\'s AOP hands it a copy',
                new LockSpec('x'), 'append'],
            'a fence that nobody takes' => ["fence is 'nubmer', which is no parameter",
                new LockSpec('x', ['fence' => true], fence: 'nubmer')],
            'a hold that nobody takes' => ["hold is 'held', which is no parameter", new LockSpec('x', hold: 'held')],
            'a hold as a number' => ["hold is 'id', a parameter of the type int; allowed: ?Redlock\\Hold",
                new LockSpec('x', hold: 'id')],
            'a number as a hold' => ["fence is 'hold', a parameter of the type ?Redlock\\Hold; allowed: ?int",
                new LockSpec('x', ['fence' => true], fence: 'hold'), 'shut'],
            'an unknown parameter of several' => ['no parameter $oder', new LockSpec(['stock', 'order:#{oder}'])],
            'no resource' => ['there are 0 resources; allowed: 1 to 100', new LockSpec([])],
            'too many resources' => ['101 resources', new LockSpec(\array_fill(0, 101, 'x'))],
            'a resource that is no text' => ['a resource is int; allowed: strings', new LockSpec(['stock', 7])],
            'a fence of several' => ["fence is 'id', which asks for a number: fence is true; allowed for a lock that "
                . 'is on several resources: false, since it has no fencing number',
                new LockSpec(['order', 'stock'], ['fence' => true], fence: 'id')],
            'a fence of a reader' => ["fence is 'id', which asks for a number: fence is true; allowed for a lock that "
                . 'is shared: false',
                new LockSpec('x', ['fence' => true, 'shared' => true], fence: 'id')],
            'a fence of permits' => ["fence is 'id', which asks for a number: fence is true; allowed for permits 3: "
                . 'false',
                new LockSpec('x', ['fence' => true, 'permits' => 3], fence: 'id')],
            'an unknown parameter' => ['no parameter $oder', new LockSpec('order:#{oder}')],
            'onBusy' => ["onBusy is 'nothing', which is no public method", new LockSpec('x', onBusy: 'nothing')],
            'onBusy of a static method' => ["onBusy is 'shut', which is no public static method",
                new LockSpec('x', onBusy: 'shut'), 'open'],
            'onBusy that is under the attribute of its class' => ["onBusy is 'Later', which has that very lock, too, "
                . 'and would call itself', new LockSpec('x', onBusy: 'Later'), 'later'],
            'onNoQuorum' => ["onNoQuorum is 'secret', which is no", new LockSpec('x', onNoQuorum: 'secret')],
            'onBusy with one that it does not get' => ["onBusy is 'told', which requires \$why; allowed behind the "
                . 'parameters of the method: one of the type Redlock\Exception\BusyException',
                new LockSpec('x', onBusy: 'told')],
            'onLost' => ["onLost is 'later'; allowed: 'cancel'", new LockSpec('x', onLost: 'later')],
            'a TTL too short' => ['ttlMs is "5"; allowed: 20 to 86400000', new LockSpec('x', ['ttl_ms' => 5])],
            'a TTL too long' => ['ttlMs 60000 is above maxTtlMs, 20000',
                new LockSpec('x', ['ttl_ms' => 60000], 'short')],
            'a pause' => ['retryDelayMs is "0"', new LockSpec('x', ['retry_delay_ms' => 0])],
            'a cluster' => ['there is no cluster "nope" in config/autoload/redlock.php; there are: default, short',
                new LockSpec('x', cluster: 'nope')],
            'options of the cluster' => ['no option "waits"', new LockSpec('x', cluster: 'wrong')],
            'a pool' => ['there is no redis pool "nope"', new LockSpec('x', pools: ['nope'])],
            'a pool of the cluster' => ['there is no redis pool "nowhere"', new LockSpec('x', cluster: 'away')],
            'a node in parts' => ['a node in config/autoload/redlock.php is array; allowed: a URL',
                new LockSpec('x', cluster: 'parts')],
            'a URL of the cluster' => ['cluster typo: nodes: entry 2: the port is not a number',
                new LockSpec('x', cluster: 'typo')],
            'a TTL above the max_ttl of the list' => ['ttlMs 300001 is above maxTtlMs, 300000',
                new LockSpec('x', ['ttl_ms' => 300001], 'long')],
            'a pool that is no array' => ['pools url: there is no redis pool "url" in config/autoload/redis.php; a '
                . 'node is a URL (redis://host:port) or one of: r1, set', new LockSpec('x', pools: ['url'])],
            'a sentinel set' => ['"set" is a sentinel set', new LockSpec('x', pools: ['set'])],
            'a TTL of the old annotation' => ['ttl is "5"; allowed',
                new LockSpec('x', ['ttl_ms' => 5], pools: ['r1'], translate: Compatibility::exception(...))],
            'a drift of the old annotation' => ['clockDriftFactor is "0.5"; allowed',
                new LockSpec('x', ['drift_factor' => 0.5], pools: ['r1'], translate: Compatibility::exception(...))],
        ];
    }

    /** As Hyperf's proxy classes have it. */
    public function testAGeneratorIsSeenBehindItsProxy(): void
    {
        $this->check(new LockSpec('x'), 'proxied');
        $this->expectException(InvalidOptionException::class);
        $this->expectExceptionMessage('Shop::proxiedLines is a generator');
        $this->check(new LockSpec('x'), 'proxiedLines');
    }

    /** @dataProvider elsewhere */
    public function testAMethodThatAnotherProcessCallsAnewIsRefused(string $attribute, string $collect): void
    {
        Scanner::scan();
        AnnotationCollector::{$collect}(...[Shop::class, ...($collect === 'collectMethod' ? ['pay'] : []), $attribute,
            new \stdClass()]);
        try {
            $this->expectException(InvalidOptionException::class);
            $this->expectExceptionMessage("Shop::pay has the attribute $attribute, too");
            $this->check(new LockSpec('x'));
        } finally {
            Scanner::scan();
        }
    }

    public static function elsewhere(): array
    {
        return ['a task' => [Task::class, 'collectMethod'], 'a message' => [AsyncQueueMessage::class, 'collectMethod'],
            'of a class of tasks' => [Task::class, 'collectClass']];
    }

    public function testOnLostNeedsASwooleThatCanThrowIntoACoroutine(): void
    {
        if (!CancelOnLoss::isPossible()) {
            $this->expectException(InvalidOptionException::class);
            $this->expectExceptionMessage("pay: onLost is 'cancel', which needs Swoole 6.1 or newer");
        }
        $this->check(new LockSpec('x', onLost: 'cancel'));
        $this->addToAssertionCount(1);
    }
}

class Shop
{
    public function pay(int $id): string
    {
        return "paid $id";
    }

    public function later(int $id): string
    {
        return "later $id";
    }

    public function told(int $id, NoQuorumException $why, int $times = 1): string
    {
        return "told $id";
    }

    public function lines(): \Generator
    {
        yield 1;
    }

    public function shut(?Hold $hold = null): void
    {
    }

    public static function open(): void
    {
    }

    public function append(array &$lines): void
    {
        $lines[] = 1;
    }

    public function proxied(int $id): mixed
    {
        return self::__proxyCall(__CLASS__, __FUNCTION__, ['keys' => \compact(['id'])], function (int $id) {
            $lines = (function () use ($id) {
                yield $id;
            })();
            return [new class {
                public function all(): \Generator
                {
                    yield 1;
                }
            }, $lines, fn () => yield 2];
        });
    }

    public function proxiedLines(int $id): mixed
    {
        return self::__proxyCall(__CLASS__, __FUNCTION__, ['keys' => \compact(['id'])], function (int $id) {
            if ($id > 0) {
                $got = [1, yield from [$id]];
            }
        });
    }

    private static function __proxyCall(mixed ...$arguments): mixed
    {
        return null;
    }

    private function secret(): void
    {
    }
}
