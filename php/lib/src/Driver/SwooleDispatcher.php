<?php

declare(strict_types=1);

namespace Redlock\Driver;

use Redlock\Native;
use Swoole\Coroutine;
use Swoole\Coroutine\System;

/** @internal */
final class SwooleDispatcher
{
    /** How long the coroutine outlives its last waiter if that one was cancelled and nothing else happens. */
    private const IDLE_S = 0.1;

    private int $pending = 0;
    private bool $running = false;

    public function __construct(private readonly Native\Client $client)
    {
    }

    public function begin(): void
    {
        if ($this->pending++ === 0) {
            $this->client->process(); /* alone, so nothing is gained by sending with others in the loop's next turn */
        }
        if (!$this->running) {
            $this->running = true;
            Coroutine::create($this->loop(...));
        }
    }

    public function end(): void
    {
        $this->pending--;
    }

    private function loop(): void
    {
        try {
            while ($this->pending > 0) {
                System::waitEvent($this->client->fd(), \SWOOLE_EVENT_READ, self::IDLE_S);
                Tags::process($this->client);
            }
        } finally {
            $this->running = false;
        }
    }
}
