<?php

declare(strict_types=1);

namespace Redlock\Driver;

use Redlock\Loop\Loop;
use Redlock\Native;

/** @internal A client's descriptor in an event loop. */
final class LoopWatch
{
    /** @var resource */
    private $stream;
    private mixed $watch = null;
    private int $pending = 0;

    public function __construct(private readonly Native\Client $client, private readonly Loop $loop)
    {
        if (!\in_array(\PHP_SAPI, ['cli', 'phpdbg'], true)) {
            throw new \RuntimeException(
                'locks in Fibers need php://fd, which PHP has only on the command line, not under '
                . \PHP_SAPI . ': connect without a loop there');
        }
        $stream = @\fopen('php://fd/' . $client->fd(), 'r');
        if ($stream === false) {
            throw new \RuntimeException('the client\'s descriptor can not be opened as php://fd/' . $client->fd() . ': '
                . (\error_get_last()['message'] ?? ''));
        }
        $this->stream = $stream;
    }

    public function await(Native\Lock $lock): int
    {
        $suspension = $this->loop->suspension();
        $tag = Tags::add($lock, $suspension->resume(...));
        $this->begin();
        try {
            while (($status = $lock->status()) === \REDLOCK_PENDING) {
                $suspension->suspend();
            }
            return $status;
        } finally {
            Tags::remove($tag);
            $this->end();
        }
    }

    private function begin(): void
    {
        if ($this->pending++ === 0) {
            $client = $this->client;
            $client->process(); /* alone, so nothing is gained by sending with others in the loop's next turn */
            $this->watch = $this->loop->watch($this->stream, static fn () => Tags::process($client));
        }
    }

    private function end(): void
    {
        if (--$this->pending === 0) {
            $this->loop->unwatch($this->watch);
        }
    }
}
