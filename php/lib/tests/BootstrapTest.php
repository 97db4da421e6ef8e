<?php

declare(strict_types=1);

namespace Redlock\Tests;

use Redlock\Exception\InvalidOptionException;
use Redlock\Exception\NoQuorumException;
use Redlock\Exception\RefusedConfigException;

/** Client::bootstrap() and bin/redlock-bootstrap, on nodes that are new. */
final class BootstrapTest extends NodesTestCase
{
    protected function setUp(): void
    {
        parent::setUp();
        self::cluster()->makeNew();
    }

    /** @return list<string> */
    private static function did(array $rows): array
    {
        return \array_column($rows, 'did');
    }

    public function testNewNodesVoteAtOnceAndAreLeftAsTheyAre(): void
    {
        $client = $this->client(maxTtlMs: 30000);
        $rows = $client->bootstrap(new: true);
        $this->assertSame(\array_fill(0, 5, 'registered'), self::did($rows));
        $this->assertSame(\array_map(static fn (Node $node): string => \substr($node->url, 8), self::cluster()->nodes),
            \array_column($rows, 'node'));
        $this->assertSame([true, 30000], [$rows[0]['votes'], $rows[0]['max_ttl_ms']]);
        $this->assertIsString($rows[0]['found']);
        $this->assertNotFalse($this->client(clientName: 'first')->lock('x')->tryAcquire());
        $this->assertSame(\array_fill(0, 5, 'nothing'), self::did($client->bootstrap(yes: true)));
    }

    public function testAnotherNumberIsLeftAloneUnlessItIsReplaced(): void
    {
        $this->client()->bootstrap(new: true);
        $other = $this->client(maxTtlMs: 60000);
        try {
            $other->bootstrap(yes: true);
            $this->fail('the nodes allow 30 s');
        } catch (RefusedConfigException $refused) {
            $this->assertSame(\array_fill(0, 5, 'left_alone'), self::did($refused->result()));
            $this->assertNotSame('', $refused->getMessage());
        }
        $this->assertSame(\array_fill(0, 5, 'replaced'), self::did($other->bootstrap(replace: true)));
        $this->assertNotFalse($other->lock('x', ttlMs: 50000)->tryAcquire(20000));
    }

    /** Each prefix has markers of its own, and so a quarantine of its own. */
    public function testLongLocksUnderAPrefixDoNotDelayTheOthers(): void
    {
        $short = $this->client(clientName: 'short', maxTtlMs: 3000, ttlMs: 2000, nodeTimeoutMs: 'auto');
        $long = $this->client(clientName: 'long', keyPrefix: 'long:', maxTtlMs: 86_400_000, ttlMs: 3_600_000);
        foreach ([$short, $long] as $client) {
            $this->assertSame(\array_fill(0, 5, 'registered'), self::did($client->bootstrap(new: true)));
            $this->assertNotFalse($client->lock('before')->tryAcquire());
        }
        foreach ([0, 1, 2] as $number) {
            self::cluster()->call('restart', $number, 1); /* without its data */
        }
        $this->assertNotFalse($short->lock('after')->tryAcquire(30000), 'after 3 s');
        $this->expectException(NoQuorumException::class);
        $this->expectExceptionMessageMatches('/may have lost keys/');
        $long->lock('after')->acquire(0);
    }

    public function testANodeThatDoesNotAnswerIsNamed(): void
    {
        self::cluster()->nodes[2]->kill();
        try {
            $this->client(connectTimeoutMs: 2000)->bootstrap(yes: true);
            $this->fail('a node is away');
        } catch (NoQuorumException $refused) {
            $this->assertSame('no_answer', $refused->result()[2]['did']);
            $this->assertSame('registered', $refused->result()[0]['did']);
        }
    }

    public function testOneWayIsToBeChosen(): void
    {
        $client = $this->client();
        foreach ([[], ['new' => true, 'yes' => true], ['new' => true, 'replace' => true]] as $ways) {
            try {
                $client->bootstrap(...$ways);
                $this->fail('it was not refused');
            } catch (InvalidOptionException $refused) {
                $this->assertStringContainsString('new: true', $refused->getMessage());
            }
        }
    }

    public function testTheProgramSaysWhatItDid(): void
    {
        $nodes = self::cluster()->nodes;
        $name = \substr($nodes[0]->url, 8);
        $urls = \array_column($nodes, 'url');
        [$status, $said] = self::program('--new', ...$urls);
        $this->assertSame(0, $status, $said);
        $this->assertStringContainsString("$name: registered; it ", $said);
        [$status, $said] = self::program('--yes', ...$urls);
        $this->assertSame([0, "$name: votes already\n"], [$status, \substr($said, 0, \strpos($said, "\n") + 1)]);
        [$status, $said] = self::program('--yes', '--max-ttl=1m', ...$urls);
        $this->assertSame(78, $status);
        $this->assertStringContainsString("$name: left alone: it ", $said);
        $this->assertSame(0, self::program('--replace', '--max-ttl-ms=60000', ...$urls)[0]);
        $nodes[4]->kill();
        [$status, $said] = self::program('--yes', '--max-ttl-ms=60000', '--connect-timeout-ms=2000', ...$urls);
        $this->assertSame(69, $status);
        $this->assertStringContainsString('no answer: ', $said);
    }

    public function testTheProgramRefusesInWords(): void
    {
        $refused = [
            'say --new for new nodes, or --yes' => ['redis://127.0.0.1:1'],
            'say --new' => ['--new', '--yes', 'redis://127.0.0.1:1'],
            'there is no flag --force' => ['--force'],
            '--max-ttl-ms is "x"; allowed: 20 to ' => ['--yes', '--max-ttl-ms=x', 'redis://127.0.0.1:1'],
            '--max-ttl is "5"; allowed: durations such as 500ms, 30s, 2m, 1h, or --max-ttl-ms in milliseconds' =>
                ['--yes', '--max-ttl=5', 'redis://127.0.0.1:1'],
            'there is no option "max_tl_ms"; did you mean --max-ttl-ms?' =>
                ['--yes', '--max-tl-ms=5', 'redis://127.0.0.1:1'],
            'no nodes were given' => ['--yes'],
        ];
        foreach ($refused as $words => $arguments) {
            [$status, $said] = self::program(...$arguments);
            $this->assertSame(64, $status, $said);
            $this->assertStringContainsString("redlock-bootstrap: $words", $said);
        }
        [$status, $said] = self::program('--help');
        $this->assertSame(0, $status);
        $this->assertStringContainsString('usage: redlock-bootstrap', $said);
    }

    /** @return array{int, string} exit status, and what it says */
    private static function program(string ...$arguments): array
    {
        $extension = (string) \getenv('REDLOCK_PHP_EXTENSION');
        $process = \proc_open([\PHP_BINARY, '-n', '-d', "extension=$extension",
            \dirname(__DIR__) . '/bin/redlock-bootstrap', ...$arguments],
            [1 => ['pipe', 'w'], 2 => ['redirect', 1]], $pipes, env_vars: ['REDLOCK_NODES' => ''] + \getenv());
        $said = (string) \stream_get_contents($pipes[1]);
        return [\proc_close($process), $said];
    }
}
