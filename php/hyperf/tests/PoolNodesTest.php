<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests;

use PHPUnit\Framework\TestCase;
use Redlock\Exception\InvalidOptionException;
use Redlock\Hyperf\Locks;
use Redlock\Hyperf\LockSpec;
use Redlock\Hyperf\PoolNodes;

final class PoolNodesTest extends TestCase
{
    /** @dataProvider pools */
    public function testAPoolBecomesAUrl(array $pool, string $url): void
    {
        $this->assertSame([$url], PoolNodes::resolve(['nodes' => ['p']], ['p' => $pool])['nodes']);
    }

    public static function pools(): array
    {
        return [
            [['host' => 'r1', 'port' => 7001], 'redis://r1:7001/0'],
            [['host' => 'r1', 'db' => 3, 'auth' => 's/e:c@'], 'redis://:s%2Fe%3Ac%40@r1:6379/3'],
            [['host' => 'r1', 'auth' => ['me', 'secret']], 'redis://me:secret@r1:6379/0'],
            [['host' => 'r1', 'auth' => null], 'redis://r1:6379/0'],
            [['host' => '::1'], 'redis://[::1]:6379/0'],
            [['host' => '/run/r.sock', 'db' => 2], 'unix:///run/r.sock?db=2'],
            [['host' => 'tls://r1'], 'rediss://r1:6379/0'],
        ];
    }

    public function testUrlsAndPoolsMixAndThePrefixIsRead(): void
    {
        $pools = ['a' => ['host' => 'r1', 'options' => ['prefix' => 'app:']],
            'b' => ['host' => 'r2', 'options' => [2 => 'app:']]];
        $config = PoolNodes::resolve(['nodes' => ['a', 'redis://r3', 'b'], 'ttl_ms' => 5], $pools);
        $this->assertSame(
            ['nodes' => ['redis://r1:6379/0', 'redis://r3', 'redis://r2:6379/0'], 'ttl_ms' => 5,
                'key_prefix' => 'app:'], $config);
        $this->assertSame('mine:',
            PoolNodes::resolve(['nodes' => ['a'], 'key_prefix' => 'mine:'], $pools)['key_prefix']);
    }

    public function testADumpOfAServiceShowsNoPassword(): void
    {
        $locks = new Locks(['default' => ['nodes' => ['redis://:secret@127.0.0.1:1', 'p']]],
            ['p' => ['host' => '127.0.0.1', 'port' => 2, 'auth' => 'secret']]);
        $locks->client();
        $this->assertStringNotContainsString('secret', \print_r($locks, true));
        $this->assertStringContainsString('default', \print_r($locks, true));
    }

    public function testAnEmptyVariableNamesNoNode(): void
    {
        $this->assertNull(PoolNodes::resolve(['nodes' => \explode(',', '')], [])['nodes']);
    }

    /** @dataProvider refused */
    public function testWhatCanNotBeANodeIsRefused(array $nodes, string $words): void
    {
        $pools = [
            'cluster' => ['host' => 'r', 'cluster' => ['enable' => true]],
            'sentinel' => ['host' => 'r', 'sentinel' => ['enable' => true]],
            'a' => ['host' => 'r1', 'options' => ['prefix' => 'a:']],
            'b' => ['host' => 'r2'],
            'hosts' => ['host' => ['r1', 'r2']],
            'db' => ['host' => 'r1', 'db' => [1]],
            'port' => ['host' => 'r1', 'port' => new \stdClass()],
            'prefix' => ['host' => 'r1', 'options' => ['prefix' => ['a:']]],
        ];
        $this->expectException(InvalidOptionException::class);
        $this->expectExceptionMessage($words);
        PoolNodes::resolve(['nodes' => $nodes], $pools);
    }

    public static function refused(): array
    {
        return [
            [['cluster'], '"cluster" is a Redis Cluster'],
            [['sentinel'], '"sentinel" is a sentinel set'],
            [['c'], 'one of: cluster, sentinel, a, b'],
            [['hosts'], 'the host of the redis pool "hosts" is array; allowed: a text or a number'],
            [['port'], 'the port of the redis pool "port" is stdClass'],
            [['db'], 'the db of the redis pool "db" is array'],
            [['prefix'], 'the prefix of the redis pool "prefix" is array'],
            [['a', 'b'], 'different key prefixes'],
        ];
    }

    /** With the arguments of calls, which only production settings leave out. @dataProvider failing */
    public function testNoTraceHasAPassword(\Closure $call): void
    {
        $kept = \ini_set('zend.exception_ignore_args', '0');
        try {
            $call();
            $this->fail('nothing was refused');
        } catch (InvalidOptionException | \TypeError $refused) {
            $ours = \array_filter($refused->getTrace(),
                static fn (array $frame): bool => \str_starts_with($frame['class'] ?? '', 'Redlock\\')
                    && !\str_contains($frame['class'] . $frame['function'], 'Test'));
            $texts = [];
            \array_walk_recursive($ours, static function (mixed $value) use (&$texts): void {
                \is_string($value) && $texts[] = $value;
            });
            $this->assertContains('Redlock\Hyperf\Locks', $texts);
            if (\PHP_VERSION_ID >= 80200) { /* before it no argument of a trace can be hidden */
                $this->assertStringNotContainsString('s3cret', \implode(' ', $texts));
            }
        } finally {
            \ini_set('zend.exception_ignore_args', $kept);
        }
    }

    public static function failing(): array
    {
        $pools = ['a' => ['host' => 'r1', 'auth' => 's3cret'],
            'set' => ['host' => 'r', 'auth' => 's3cret', 'sentinel' => ['enable' => true]]];
        $locks = static fn (mixed ...$config): Locks => new Locks(['default' => $config], $pools);
        return [
            'an unknown pool' => [static fn () => $locks(nodes: ['redis://:s3cret@r1', 'b'])->client()],
            'a sentinel set' => [static fn () => $locks()->clientOfPools(['set'])],
            'an option' => [static fn () => $locks(nodes: ['a'], ttl_ms: 5)->client()],
            'an option at the boot' => [static fn () => $locks(nodes: ['a'])->check(
                new LockSpec('x', ['ttl_ms' => 5]))],
            'a URL at the boot' => [static fn () => $locks(nodes: ['redis://:s3cret@r1:x'])->check(new LockSpec('x'))],
            'clusters that are no list' => [static fn () => new Locks(['default' => ['nodes' => 'redis://:s3cret@r']],
                's3cret')],
        ];
    }
}
