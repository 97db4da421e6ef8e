<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests;

use Redlock\Hyperf\Command\StatusCommand;
use Redlock\Hyperf\Locks;
use Redlock\ResourceStatus;
use Redlock\Tests\NodesTestCase;
use Redlock\Tests\StatusTest;

require_once __DIR__ . '/hyperf.php';

final class StatusCommandTest extends NodesTestCase
{
    /** @return list<mixed> its exit status and what it says */
    private function status(array $cluster, string $resource, ?string $permits = null): array
    {
        $command = new StatusCommand(new Locks(['default' => $cluster + $this->config()], []));
        $command->input = new class ($resource, ['cluster' => 'default', 'permits' => $permits]) {
            public function __construct(private readonly string $resource, private readonly array $options)
            {
            }

            public function getArgument(string $name): string
            {
                return $this->resource;
            }

            public function getOption(string $name): ?string
            {
                return $this->options[$name];
            }
        };
        return [$command->handle(), ...$command->said];
    }

    public function testStatusNamesTheHolderOfALockAndOfEachPermit(): void
    {
        $client = $this->client(clientName: 'worker-7');
        $by = 'held by worker-7 (pid ' . \getmypid() . ' on ' . \gethostname() . ') for ';
        $lock = $client->lock('order:7')->acquire();
        StatusTest::named(static fn (): ResourceStatus => $client->status('order:7'));
        [$code, $head, $node] = $said = $this->status([], 'order:7');
        $this->assertSame([0, 'node', \substr($lock->token(), 0, 8)], [$code, $head[0], $node[2]]);
        $this->assertStringStartsWith($by, \end($said));
        $gpu = $client->lock('gpu', permits: 2, slot: 1)->acquire();
        StatusTest::named(static fn (): ResourceStatus => $client->status('gpu', permits: 2));
        foreach ([$this->status([], 'gpu', '2'), $this->status(['permits' => 2], 'gpu')] as $said) {
            [$code, $head, $free, $held] = $said;
            $this->assertSame([0, 'permit', [0, 'free', '', null], [1, \substr($gpu->token(), 0, 8)]],
                [$code, $head[0], $free, [$held[0], $held[2]]]);
            $this->assertStringStartsWith($by, $held[1]);
            $this->assertSame('free: "gpu": 1 of 2 permits held', \end($said));
        }
    }
}
