<?php

declare(strict_types=1);

namespace Redlock\Tests;

use PHPUnit\Framework\TestCase;
use Redlock\Client;
use Redlock\ClientInterface;
use Redlock\Exception\InvalidOptionException;
use Redlock\Exception\RedlockThrowable;
use Redlock\Native\Client as Native;
use Redlock\Status;
use Redlock\Testing\MemoryClient;

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

    public function testSmallFractionsAreTakenAsTheyAre(): void
    {
        $client = Client::connect(self::NODE, driftFactor: 0.00001);
        $this->assertSame('0.00001', $client->option('drift_factor'));
        $this->assertSame('0.0', $client->lock('x', driftFactor: -0.0)->option('drift_factor'));
    }

    public function testTimesInArraysMayHaveAUnit(): void
    {
        $wanted = ['ttl' => '10s', 'max_ttl' => '1.5h', 'wait' => 'forever', 'outage_wait' => '0',
            'node_timeout' => 'auto', 'retry_delay' => '250ms', 'max_hold' => '2m', 'connect_timeout_ms' => 700];
        $client = Client::fromArray(['nodes' => self::NODE] + $wanted);
        $this->assertSame(['10000', '5400000', '-1', '0', 'auto', '250', '120000', '700'],
            \array_map(static fn (string $name): string => $client->option(\preg_replace('/_ms$/', '', $name) . '_ms'),
                \array_keys($wanted)));
        $this->assertInvalid('/^ttlMs 7200000 is above maxTtlMs, 5400000/',
            static fn () => $client->lockFromArray('x', ['ttl' => '2h'])->acquire(0));
        foreach (['10', '10 s', '1d', '0.5ms', 's', '-5s', '', 10, 0.5, true, null, ['1s']] as $wrong) {
            $this->assertInvalid('/^ttl is .*; allowed: durations such as 500ms, 30s, 2m, 1h, or ttl_ms/',
                static fn () => Client::fromArray(['nodes' => self::NODE, 'ttl' => $wrong]));
        }
        $this->assertInvalid('/^wait and wait_ms are one option/',
            static fn () => $client->lockFromArray('x', ['wait_ms' => 5, 'wait' => '5ms']));
        $this->assertInvalid('/no option "key_prefix_ms"|no option "waits"/',
            static fn () => Client::fromArray(['nodes' => self::NODE, 'waits' => '5s']));
    }

    public function testEveryOptionOfTheTableIsANamedArgument(): void
    {
        for ($i = 0; ($name = \redlock_option_at($i, \REDLOCK_OPTION_NAME)) !== null; $i++) {
            if ($name === 'nodes') {
                continue;
            }
            $camel = \lcfirst(\str_replace('_', '', \ucwords($name, '_')));
            $default = \redlock_option_at($i, \REDLOCK_OPTION_DEFAULT);
            $typed = ['int' => 'intval', 'float' => 'floatval', 'string' => 'strval',
                'bool' => static fn (string $text): bool => $text === 'true'];
            $given = $default === 'auto' ? 'auto' : $typed[\redlock_option_at($i, \REDLOCK_OPTION_TYPE)]($default);
            $value = Client::connect(self::NODE, ...[$camel => $given])->option($name);
            $this->assertTrue(\is_numeric($default) ? (float) $value === (float) $default : $value === $default,
                "$name: $value, not $default");
        }
    }

    /** What editors and analysers see. */
    public function testEveryOptionIsATypedParameter(): void
    {
        $types = ['int' => '?int', 'float' => '?float', 'bool' => '?bool', 'string' => '?string'];
        $connect = self::parameters(Client::class, 'connect');
        $locks = \array_map(static fn (string $class): array => self::parameters($class, 'lock'),
            [Client::class, ClientInterface::class, MemoryClient::class]);
        for ($i = 0; ($name = \redlock_option_at($i, \REDLOCK_OPTION_NAME)) !== null; $i++) {
            if ($name === 'nodes') {
                continue;
            }
            $camel = \lcfirst(\str_replace('_', '', \ucwords($name, '_')));
            $named = \redlock_option_at($i, \REDLOCK_OPTION_TYPE);
            $isAuto = $named === 'int' && \redlock_option_at($i, \REDLOCK_OPTION_DEFAULT) === 'auto';
            $type = $isAuto ? 'string|int|null' : $types[$named];
            $this->assertSame($type, $connect[$camel] ?? 'none', $camel);
            $ofLocks = \redlock_option_at($i, \REDLOCK_OPTION_SCOPE) === 'both' ? $type : 'none';
            $this->assertSame([$ofLocks, $ofLocks, $ofLocks],
                \array_map(static fn (array $parameters): string => $parameters[$camel] ?? 'none', $locks), $camel);
        }
    }

    /** @return array<string, string> name => type */
    private static function parameters(string $class, string $method): array
    {
        $parameters = (new \ReflectionMethod($class, $method))->getParameters();
        return \array_map(static fn (\ReflectionParameter $p): string => (string) $p->getType(),
            \array_column(\array_map(static fn ($p): array => [$p->getName(), $p], $parameters), 1, 0));
    }

    public function testUnknownOptionsNameTheNearest(): void
    {
        $this->assertInvalid('/"retryDelay"; did you mean retryDelayMs\?/', fn () => $this->connect(retryDelay: 1));
        $this->assertInvalid('/"ttl"; did you mean ttlMs\?/', fn () => $this->connect(ttl: '10s'));
        $this->assertInvalid('/"ttl_ms"; did you mean ttlMs\?/', fn () => $this->connect(ttl_ms: 1));
        $this->assertInvalid('/ttl_m.*ttl_ms/', fn () => Client::fromArray(['nodes' => self::NODE, 'ttl_m' => 1]));
        $this->assertInvalid('/^there is no option "nosuch"$/', fn () => $this->connect(nosuch: 1));
        $this->assertInvalid('/"prefix"; did you mean keyPrefix\?/', fn () => $this->connect(prefix: 'a'));
        $this->assertInvalid('/"retry"; did you mean retryCount\?/', fn () => $this->connect()->lock('x', retry: 1));
        $this->assertInvalid('/^there is no option "port"$/', fn () => $this->connect(port: 1));
        $this->assertInvalid('/"ttlMz"; did you mean ttlMs\?/', fn () => $this->connect()->lock('x', ttlMz: 1));
        $this->assertRefused(\ArgumentCountError::class, '/named arguments/',
            fn () => $this->connect()->lock('x', ...\array_fill(0, 40, null)));
    }

    public function testValuesAreRefusedWithNameValueAndRange(): void
    {
        $this->assertInvalid('/^ttlMs is "0"; allowed: 20 to 86400000, not above maxTtlMs$/',
            fn () => $this->connect(ttlMs: 0));
        $this->assertInvalid('/^nodeTimeoutMs is "retry_delay_ms"; /',
            fn () => $this->connect(nodeTimeoutMs: 'retry_delay_ms'));
        $this->assertInvalid('/^nodeTimeoutMs is 500; allowed for ttlMs 1000: /',
            fn () => $this->connect()->lock('x', ttlMs: 1000, nodeTimeoutMs: 500)->acquire(0));
        $this->assertInvalid('/^ttlMs 10000 is above maxTtlMs, 4000/',
            fn () => $this->connect(ttlMs: 10000, maxTtlMs: 4000));
        $this->assertInvalid('/^nodeTimeoutMs is 500; allowed for ttlMs 1000: /',
            fn () => $this->connect(ttlMs: 1000, nodeTimeoutMs: 500));
        foreach ([$this->connect(maxTtlMs: 4000), Client::connect(self::NODE . '?max_ttl=4s')] as $short) {
            $this->assertSame('4000', $short->option('ttl_ms'));
            $this->assertSame('4000', $short->lock('x')->option('ttl_ms'));
        }
        $this->assertInvalid('/^ttlMs is "5"; /', fn () => $this->connect()->adopt('x', \str_repeat('0', 40), 5));
        $this->assertInvalid('/^ttl_ms is "0"; allowed: 20 to 86400000, not above max_ttl_ms$/',
            fn () => Client::fromArray(['nodes' => self::NODE, 'ttl_ms' => 0]));
        $this->assertInvalid('/^ttl_ms is "0"; /', fn () => $this->connect()->lockFromArray('x', ['ttl_ms' => 0]));
        $this->assertRefused(\TypeError::class, '/^option permits must be of type int, stdClass given/',
            fn () => $this->connect()->lockFromArray('x', ['permits' => new \stdClass()]));
        $this->assertRefused(\TypeError::class, '/\(\$ttlMs\) must be of type \?int, array given/',
            fn () => $this->connect(ttlMs: []));
        $this->assertRefused(\TypeError::class, '/^option ttl_ms must be of type int, array given$/',
            fn () => Client::fromArray(['nodes' => self::NODE, 'ttl_ms' => []]));
        $this->assertRefused(\TypeError::class, '/\(\$ttlMs\) must be of type \?int, (bool|true) given/',
            fn () => Client::connect(self::NODE, ttlMs: true));
        $this->assertRefused(\TypeError::class, '/\(\$renew\) must be of type \?bool, int given/',
            fn () => Client::connect(self::NODE)->lock('x', renew: 1));
        $this->assertInvalid('/^keyPrefix must not contain any null bytes$/',
            fn () => $this->connect(keyPrefix: "a\0b"));
        $this->assertInvalid('/^nodes must not contain any null bytes$/', fn () => Client::connect("redis://a\0b"));
        $this->assertRefused(\TypeError::class, '/nodes must be a string, a list of strings or null, int given/',
            fn () => Client::connect([1]));
    }

    public function testTheEnumOfStatusesIsTheOneOfTheLibrary(): void
    {
        $names = [];
        for ($status = 0; ($name = \redlock_status_name($status)) !== 'UNKNOWN'; $status++) {
            $names[$status] = \str_replace('_', '', \ucwords(\strtolower($name), '_'));
        }
        $this->assertSame($names, \array_column(Status::cases(), 'name', 'value'));
        $this->assertSame([Status::Busy, true, true],
            [Status::from(\REDLOCK_BUSY), Status::Busy->isError(), Status::Busy->isRetriable()]);
        $this->assertSame([false, \redlock_status_text(\REDLOCK_OK)], [Status::Ok->isError(), Status::Ok->text()]);
        try {
            $this->connect(ttlMs: 0);
        } catch (RedlockThrowable $refused) {
            $this->assertSame(Status::Invalid, Status::from($refused->status()));
        }
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

    public function testWrongArgumentsOfLocksAreRefused(): void
    {
        $client = Client::connect(self::NODE);
        $lock = $client->lock('x');
        $this->assertRefused(\ValueError::class, '/\$waitMs.*-5 given/', fn () => $lock->acquire(-5));
        $this->assertInvalid('/^waitMs is 9223372036854775807; allowed: 0 to 31536000000, or -1 for no limit$/',
            fn () => $lock->acquire(\PHP_INT_MAX));
        $hold = $client->adopt('x', \str_repeat('a', 40));
        $this->assertRefused(\ValueError::class, '/\$ttlMs.*0 given/', fn () => $hold->extend(0));
        $this->assertInvalid('/resource/', fn () => $client->lock(''));
        $this->assertInvalid('/^the pattern of locks\(\) is empty/', fn () => $client->locks(''));
        $this->assertInvalid('/^token must not contain any null bytes$/', fn () => $client->adopt('x', "a\0b"));
        $this->assertRefused(\ValueError::class, '/^the limit of drain\(\).*-4 given$/', fn () => $client->drain(-4));
        $this->assertInvalid('/keyPrefix is an option of the client/', fn () => $client->lock('x', keyPrefix: 'y'));
    }

    public function testPasswordsAreShownNowhere(): void
    {
        $client = Client::connect('redis://me:secret@127.0.0.1:1');
        $this->assertStringNotContainsString('secret', $client->option('nodes') . \json_encode($client->describe()));
        \ob_start();
        \phpinfo(\INFO_MODULES);
        $this->assertStringNotContainsString('secret', \ob_get_clean());
        $nodes = 'redis://me:secret@127.0.0.1:1';
        foreach ([
            static fn () => Client::connect($nodes, ttlMs: 0),
            static fn () => Client::fromArray(['nodes' => $nodes, 'password' => 'secret']), /* as those of redis.php */
        ] as $call) {
            $error = self::errorWithArguments($call);
            $this->assertStringNotContainsString('secret', $error->getMessage());
            $arguments = \array_map(static fn (array $frame): array => $frame['args'],
                \array_filter($error->getTrace(), static fn (array $frame): bool =>
                    \in_array($frame['class'] ?? '', [Client::class, Native::class])));
            $this->assertNotSame([], $arguments);
            if (\PHP_VERSION_ID >= 80200) { /* before it no argument of a trace can be hidden */
                $this->assertStringNotContainsString('secret', \print_r($arguments, true));
            }
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
