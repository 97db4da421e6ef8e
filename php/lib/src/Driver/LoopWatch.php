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
    private readonly \Closure $ready;
    private mixed $watch = null;
    private int $pending = 0;

    public function __construct(Native\Client $client, private readonly Loop $loop)
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
        $this->ready = static fn () => Tags::process($client);
    }

    /** One operation more. REDLOCK_AT_ONCE if it is alone: then nothing is gained by sending with others. */
    public function begin(): int
    {
        if ($this->pending++ > 0) {
            return 0;
        }
        $this->watch = $this->loop->watch($this->stream, $this->ready);
        return \REDLOCK_AT_ONCE;
    }

    public function end(): void
    {
        if (--$this->pending === 0) {
            $this->loop->unwatch($this->watch);
        }
    }
}
