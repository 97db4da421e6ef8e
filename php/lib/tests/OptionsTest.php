<?php

declare(strict_types=1);

namespace Redlock\Tests;

use PHPUnit\Framework\TestCase;
use Redlock\Client;
use Redlock\Exception\InvalidOptionException;
use Redlock\Native\Client as Native;

/** Refusals; no node is asked for any of them. */
final class OptionsTest extends TestCase
{
    private const NODE = 'redis://127.0.0.1:1';

    private function assertRefused(string $class, string $pattern, \Closure $call): void
    {
        try {
            $call();
        } catch (\Throwable $e) {
            $this->assertInstanceOf($class, $e);
            $this->assertMatchesRegularExpression($pattern, $e->getMessage());
            return;
        }
        $this->fail('nothing was refused');
    }

    private function assertInvalid(string $pattern, \Closure $call): void
    {
        $this->assertRefused(InvalidOptionException::class, $pattern, $call);
    }

    private function connect(mixed ...$options): Client
    {
        return Client::connect(self::NODE, ...$options);
    }

    public function testNamedOptionsAreCamelCase(): void
    {
        $client = Client::connect(self::NODE, ttlMs: 2000, retryJitter: 0.5, renew: true, keyPrefix: 'p:');
        $this->assertSame(['2000', '0.5', 'true', 'p:'],
            \array_map($client->option(...), ['ttl_ms', 'retry_jitter', 'renew', 'key_prefix']));
    }

    public function testArraysHaveTheNamesOfTheTable(): void
    {
        $client = Client::fromArray(
            ['nodes' => [self::NODE, 'redis://127.0.0.1:2'], 'ttl_ms' => '2500', 'drift_factor' => 0.02]);
        $this->assertSame('2500', $client->option('ttl_ms'));
        $this->assertCount(2, $client->describe()['nodes']);
    }

    public function testEveryOptionOfTheTableIsANamedArgument(): void
    {
        for ($i = 0; ($name = \redlock_option_at($i, \REDLOCK_OPTION_NAME)) !== null; $i++) {
            if ($name === 'nodes') {
                continue;
            }
            $camel = \lcfirst(\str_replace('_', '', \ucwords($name, '_')));
            $default = \redlock_option_at($i, \REDLOCK_OPTION_DEFAULT);
            $value = Client::connect(self::NODE, ...[$camel => $default])->option($name);
            $this->assertTrue(\is_numeric($default) ? (float) $value === (float) $default : $value === $default,
                "$name: $value, not $default");
        }
    }

    public function testUnknownOptionsNameTheNearest(): void
    {
        $this->assertInvalid('/"retryDelay"; did you mean retryDelayMs\?/', fn () => $this->connect(retryDelay: 1));
        $this->assertInvalid('/"ttl_ms"; did you mean ttlMs\?/', fn () => $this->connect(ttl_ms: 1));
        $this->assertInvalid('/ttl_m.*ttl_ms/', fn () => Client::fromArray(['nodes' => self::NODE, 'ttl_m' => 1]));
        $this->assertRefused(\ArgumentCountError::class, '/named arguments/',
            fn () => Client::connect(self::NODE, null, null, 5));
    }

    public function testValuesAreRefusedWithNameValueAndRange(): void
    {
        $this->assertInvalid('/^ttlMs is "0"; allowed: 20 to 86400000, not above maxTtlMs$/',
            fn () => $this->connect(ttlMs: 0));
        $this->assertInvalid('/^ttlMs is "retry_delay_ms"; /', fn () => $this->connect(ttlMs: 'retry_delay_ms'));
        $this->assertInvalid('/^nodeTimeoutMs is 500; allowed for ttlMs 1000: /',
            fn () => $this->connect()->lock('x', ttlMs: 1000, nodeTimeoutMs: 500)->acquire(0));
        $this->assertInvalid('/^ttlMs is "5"; /', fn () => $this->connect()->adopt('x', \str_repeat('0', 40), 5));
        $this->assertInvalid('/^ttl_ms is "0"; allowed: 20 to 86400000, not above max_ttl_ms$/',
            fn () => Client::fromArray(['nodes' => self::NODE, 'ttl_ms' => 0]));
        $this->assertInvalid('/^ttl_ms is "0"; /', fn () => $this->connect()->lockFromArray('x', ['ttl_ms' => 0]));
        $this->assertRefused(\TypeError::class, '/^option ttlMs must be of type int, array given$/',
            fn () => $this->connect(ttlMs: []));
        $this->assertRefused(\TypeError::class, '/^option ttl_ms must be of type int, array given$/',
            fn () => Client::fromArray(['nodes' => self::NODE, 'ttl_ms' => []]));
        $this->assertRefused(\TypeError::class, '/option ttlMs must be of type int, bool given/',
            fn () => $this->connect(ttlMs: true));
        $this->assertRefused(\TypeError::class, '/option renew must be of type bool, int given/',
            fn () => $this->connect(renew: 1));
        $this->assertRefused(\ValueError::class, '/null bytes/', fn () => $this->connect(keyPrefix: "a\0b"));
        $this->assertRefused(\TypeError::class, '/nodes must be a list of strings, int given/',
            fn () => Client::connect([1]));
    }

    public function testNodesAreChecked(): void
    {
        $this->assertInvalid('/./', fn () => Client::connect('http://127.0.0.1'));
        $this->assertInvalid('/./', fn () => Client::connect(self::NODE . ',' . self::NODE));
    }

    public function testWithoutNodesTheErrorNamesAllThreePlaces(): void
    {
        $kept = \getenv('REDLOCK_NODES');
        \putenv('REDLOCK_NODES');
        try {
            $this->assertInvalid('/\$nodes.*redlock\.nodes.*REDLOCK_NODES/', fn () => Client::connect());
            \putenv('REDLOCK_NODES=redis://127.0.0.1:7');
            $this->assertStringContainsString(':7', \json_encode(Client::connect()->describe()));
            \ini_set('redlock.nodes', 'redis://127.0.0.1:8');
            $this->assertStringContainsString(':8', \json_encode(Client::connect()->describe()));
        } finally {
            \ini_restore('redlock.nodes');
            \putenv($kept === false ? 'REDLOCK_NODES' : "REDLOCK_NODES=$kept");
        }
    }

    public function testArgumentsOfLocks(): void
    {
        $client = Client::connect(self::NODE);
        $lock = $client->lock('x');
        $this->assertRefused(\ValueError::class, '/\$waitMs.*-5 given/', fn () => $lock->acquire(-5));
        $this->assertRefused(\ValueError::class, '/\$ttlMs.*0 given/', fn () => $lock->extend(0));
        $this->assertInvalid('/resource/', fn () => $client->lock(''));
        $this->assertInvalid('/keyPrefix is an option of the client/', fn () => $client->lock('x', keyPrefix: 'y'));
    }

    public function testPasswordsAreShownNowhere(): void
    {
        $client = Client::connect('redis://me:secret@127.0.0.1:1');
        $this->assertStringNotContainsString('secret', $client->option('nodes') . \json_encode($client->describe()));
        \ob_start();
        \phpinfo(\INFO_MODULES);
        $this->assertStringNotContainsString('secret', \ob_get_clean());
        $error = self::errorWithArguments(
            static fn () => Client::connect('redis://me:secret@127.0.0.1:1', ttlMs: 0));
        $this->assertStringNotContainsString('secret', $error->getMessage());
        $arguments = \array_map(static fn (array $frame): array => $frame['args'],
            \array_filter($error->getTrace(),
                static fn (array $frame): bool => \in_array($frame['class'] ?? '', [Client::class, Native::class])));
        $this->assertSame([2, 2], \array_values(\array_map(\count(...), $arguments)));
        if (\PHP_VERSION_ID >= 80200) { /* before it no argument of a trace can be hidden */
            $this->assertStringNotContainsString('secret', \print_r($arguments, true));
        }
    }

    /** What $call throws, with a trace that has arguments, which production settings leave out. */
    private static function errorWithArguments(\Closure $call): InvalidOptionException
    {
        $kept = \ini_set('zend.exception_ignore_args', '0');
        try {
            $call();
        } catch (InvalidOptionException $error) {
            return $error;
        } finally {
            \ini_set('zend.exception_ignore_args', $kept);
        }
        throw new \LogicException('nothing was refused');
    }
}
