<?php

declare(strict_types=1);

namespace Redlock\Tests;

use Redlock\Client;
use Redlock\ClientInterface;
use Redlock\Election;
use Redlock\Exception\BusyException;
use Redlock\Exception\InvalidOptionException;
use Redlock\Exception\LostException;
use Redlock\Exception\RefusedConfigException;
use Redlock\Loop\Loop;
use Redlock\Loop\Suspension;
use Redlock\Term;
use Redlock\Testing\MemoryClient;

/** One candidate leads at a time. */
final class ElectionTest extends NodesTestCase
{
    private const SHORT = ['ttlMs' => 4000, 'nodeTimeoutMs' => 1000];

    private function lose(): void
    {
        foreach (self::cluster()->nodes as $node) {
            $node->command('DEL', 'scheduler');
        }
    }

    public function testTermsFollowEachOther(): void
    {
        $terms = [];
        foreach ([$this->client(), $this->client()] as $client) {
            $election = $client->election('scheduler');
            $this->assertSame('led', $election->run(function (Term $term) use (&$terms): string {
                $this->assertSame(['scheduler', false], [$term->resource(), $term->isLost()]);
                $this->assertGreaterThan(0, $term->remainingMs());
                $term->check();
                $this->assertFalse($this->client()->lock('scheduler')->tryAcquire());
                $terms[] = $term->fence();
                return 'led';
            }));
        }
        $this->assertGreaterThan($terms[0], $terms[1]);
        $this->assertNotFalse($this->client()->lock('scheduler')->tryAcquire(20_000));
    }

    /** @dataProvider waysToEnd */
    public function testALossEndsTheTermAndItStandsByAgain(bool $checks): void
    {
        $terms = [];
        $result = $this->client()->election('scheduler', ...self::SHORT)->run(
            function (Term $term) use (&$terms, $checks): int {
                $terms[] = $term->fence();
                if (\count($terms) === 1) {
                    $this->lose();
                    Wait::until(static fn (): bool => $term->isLost(), 'the loss');
                    $checks && $term->check();
                }
                return \count($terms);
            });
        $this->assertSame(2, $result);
        $this->assertGreaterThan($terms[0], $terms[1]);
    }

    public static function waysToEnd(): array
    {
        return ['by check()' => [true], 'by itself' => [false]];
    }

    public function testABodyThatHasEndedInTimeIsNotRepeated(): void
    {
        $ran = 0;
        $result = $this->client()->election('scheduler')->run(function () use (&$ran): int {
            $this->lose();
            return ++$ran;
        });
        $this->assertSame([1, 1], [$result, $ran]);
    }

    public function testErrorsOfTheBodyLeaveAndTheSeatIsFree(): void
    {
        $election = $this->client()->election('scheduler');
        foreach ([new \DomainException('mine'), new LostException('of another lock')] as $mine) {
            try {
                $election->run(static fn () => throw $mine);
                $this->fail('the error is gone');
            } catch (\DomainException | LostException $caught) {
                $this->assertSame($mine, $caught);
            }
        }
        $this->assertNotFalse($this->client()->lock('scheduler')->tryAcquire(20_000));
    }

    public function testItHasOneLeaderWhateverTheLocksOfItsClientAre(): void
    {
        foreach ([['shared' => true], ['permits' => 3], ['layout' => 'hash']] as $default) {
            $this->client(...$default)->election('scheduler')->run(function (Term $term): void {
                $this->assertGreaterThan(0, $term->fence());
                $this->assertFalse($this->client()->lock('scheduler')->tryAcquire());
            });
        }
    }

    public function testWhatAnElectionIsAboutIsNoOption(): void
    {
        $own = ['waitMs' => 5, 'fence' => false, 'renew' => false, 'retryCount' => 1, 'reentrant' => true];
        $own += ['shared' => true, 'permits' => 3, 'layout' => 'hash'];
        foreach ($own as $name => $value) {
            try {
                $this->client()->election('scheduler', ...[$name => $value]);
                $this->fail("$name was taken");
            } catch (InvalidOptionException $refused) {
                $this->assertStringContainsString("no option \"$name\"", $refused->getMessage());
            }
        }
        $this->expectException(InvalidOptionException::class);
        $this->expectExceptionMessage('ttlMs');
        $this->client()->election('scheduler', ttlMs: 5);
    }

    /** A signal handler runs while the wait of a process lasts. */
    public function testStopEndsAWait(): void
    {
        $leader = $this->client()->lock('scheduler');
        $leader->acquire();
        $waiting = $this->client();
        $election = $waiting->election('scheduler');
        \pcntl_async_signals(true);
        \pcntl_signal(\SIGALRM, static function () use ($waiting, $election): void {
            $waiting->describe()['waiting'] === 1 ? $election->stop() : \pcntl_alarm(1);
        });
        \pcntl_alarm(1);
        try {
            $this->assertNull($election->run(static fn () => throw new \LogicException('it leads')));
        } finally {
            \pcntl_alarm(0);
            \pcntl_signal(\SIGALRM, \SIG_DFL);
        }
        $this->assertNull($election->run(static fn () => throw new \LogicException('it leads')));
        $leader->release();
        $this->assertNothingIsLeft();
    }

    /** @dataProvider seats */
    public function testStopBeforeAWaitBeginsEndsIt(bool $isFree): void
    {
        $leader = $this->client()->lock('scheduler');
        $isFree || $leader->acquire();
        $loop = new class (new StreamSelectLoop()) implements Loop {
            public ?Election $stopped = null;

            public function __construct(public readonly StreamSelectLoop $loop)
            {
            }

            public function suspension(): Suspension
            {
                $this->stopped->stop(); /* the wait is about to begin */
                return $this->loop->suspension();
            }

            public function watch($stream, \Closure $ready): mixed
            {
                return $this->loop->watch($stream, $ready);
            }

            public function unwatch(mixed $watch): void
            {
                $this->loop->unwatch($watch);
            }
        };
        $loop->stopped = $this->client(loop: $loop)->election('scheduler');
        $this->assertSame([null], $loop->loop->run([
            static fn () => $loop->stopped->run(static fn () => throw new \LogicException('it leads')),
        ]));
        $isFree || $leader->release();
        $this->assertNotFalse($this->client()->lock('scheduler')->tryAcquire(20_000));
    }

    public static function seats(): array
    {
        return ['free' => [true], 'taken' => [false]];
    }

    public function testAfterStopALostTermIsTheLast(): void
    {
        $terms = 0;
        $election = $this->client()->election('scheduler', ...self::SHORT);
        $next = $this->client()->lock('scheduler', renew: true);
        $this->assertNull($election->run(function (Term $term) use ($election, $next, &$terms): void {
            $terms++;
            $election->stop();
            $this->assertFalse($term->isLost());
            $this->lose();
            Wait::until(static fn (): bool => $term->isLost(), 'the loss');
            $next->acquire();
        }));
        $this->assertSame(1, $terms);
    }

    /** A client of three nodes with a user of its own. Its locks give up after a second, and elections do not. */
    private function clientOfThree(string $password): Client
    {
        $urls = [];
        foreach (self::three() as $node) {
            $node->command('ACL', 'SETUSER', 'few', 'on', '>p', '~*', '&*', '+@all');
            $urls[] = "redis://few:$password@127.0.0.1:$node->port";
        }
        self::cluster()->bootstrap(3, 4000);
        $options = ['clientName' => $this->uniqueName(), 'maxTtlMs' => 4000, 'outageWaitMs' => 1000];
        return Client::connect($urls, ...$options, ...self::SHORT, ...['connectTimeoutMs' => 20_000]);
    }

    /** @return list<Node> */
    private static function three(): array
    {
        return \array_slice(self::cluster()->nodes, 0, 3);
    }

    /**
     * Two of three nodes refuse for 3 s.
     *
     * @dataProvider refusals
     * @param list<list<string>> $refuse commands
     * @param list<string> $mend a command
     */
    public function testItStandsByThroughRefusalsThatPass(array $refuse, array $mend): void
    {
        $client = $this->clientOfThree('p');
        Wait::until(static fn (): bool => $client->check()['voting'] === 3, 'three nodes that vote');
        foreach ([self::three()[0], self::three()[1]] as $node) {
            foreach ($refuse as $command) {
                $node->command(...$command);
            }
        }
        $isMended = false;
        \pcntl_async_signals(true);
        \pcntl_signal(\SIGALRM, static function () use ($mend, &$isMended): void {
            foreach ([self::three()[0], self::three()[1]] as $node) {
                $node->command(...$mend);
            }
            $isMended = true;
        });
        \pcntl_alarm(3);
        try {
            $led = $client->election('scheduler')->run(static function () use (&$isMended): bool {
                return $isMended;
            });
            $this->assertTrue($led);
        } finally {
            \pcntl_alarm(0);
            \pcntl_signal(\SIGALRM, \SIG_DFL);
        }
    }

    public static function refusals(): array
    {
        return [
            'replicas' => [[['REPLICAOF', '127.0.0.1', '1']], ['REPLICAOF', 'NO', 'ONE']],
            'another password' => [
                [['ACL', 'SETUSER', 'few', 'resetpass', '>new'], ['CLIENT', 'KILL', 'USER', 'few']],
                ['ACL', 'SETUSER', 'few', 'resetpass', '>p'],
            ],
        ];
    }

    /** Nodes that have never voted for this client: no wait helps. */
    public function testARefusalThatIsFinalEndsIt(): void
    {
        $election = $this->clientOfThree('wrong')->election('scheduler');
        \pcntl_async_signals(true);
        \pcntl_signal(\SIGALRM, $election->stop(...));
        \pcntl_alarm(20);
        $this->expectException(RefusedConfigException::class);
        $this->expectExceptionMessage('WRONGPASS');
        try {
            $election->run(static fn () => throw new \LogicException('it leads'));
        } finally {
            \pcntl_alarm(0);
            \pcntl_signal(\SIGALRM, \SIG_DFL);
        }
    }

    public function testAnElectionRunsInMemory(): void
    {
        $client = new MemoryClient(['ttl_ms' => 1000]);
        $terms = [];
        $client->election('scheduler')->run(static function (Term $term) use ($client, &$terms): void {
            $terms[] = $term->fence();
            if (\count($terms) === 1) {
                $client->lose('scheduler');
                $term->check();
            }
        });
        $this->assertGreaterThan($terms[0], $terms[1]);
        $this->assertInstanceOf(ClientInterface::class, $client);
        $client->lock('scheduler', renew: true)->run(function () use ($client): void {
            $this->expectException(BusyException::class);
            $client->election('scheduler')->run(static fn () => null);
        });
    }
}
