<?php

declare(strict_types=1);

namespace Redlock\Driver;

use Redlock\Native;
use Swoole\Coroutine;
use Swoole\Event;

/**
 * @internal A client's descriptor in Swoole's event loop, only while something is pending.
 *
 * A coroutine in System::waitEvent() is no way to do this: if its time-out or its cancellation comes in the turn of the
 * event, Swoole (6.2) still resumes it when it may have ended, and the worker crashes.
 */
final class SwooleDispatcher
{
    private readonly int $fd;
    private readonly \Closure $dispatch;
    private readonly \Closure $leave;
    private int $pending = 0;
    private bool $watches = false;
    private bool $leaves = false;

    public function __construct(private readonly Native\Client $client)
    {
        $this->fd = $client->fd();
        $this->dispatch = static function () use ($client): void {
            if (Coroutine::getCid() > 0) {
                Tags::process($client);
            } else { /* a server without enable_coroutine calls from outside of coroutines */
                Coroutine::create(Tags::process(...), $client);
            }
        };
        $this->leave = $this->leaveIfIdle(...);
    }

    /** One operation more. REDLOCK_AT_ONCE if it is alone: then nothing is gained by sending with others. */
    public function begin(): int
    {
        if (!$this->watches) {
            $this->watches = Event::add($this->fd, $this->dispatch, null, \SWOOLE_EVENT_READ) !== false;
        }
        return $this->pending++ > 0 ? 0 : \REDLOCK_AT_ONCE;
    }

    public function end(): void
    {
        if (--$this->pending === 0 && !$this->leaves) {
            $this->leaves = true;
            Event::defer($this->leave); /* a release may follow in this turn of the loop */
        }
    }

    private function leaveIfIdle(): void
    {
        $this->leaves = false;
        if ($this->pending === 0 && $this->watches) {
            $this->watches = false;
            Event::del($this->fd);
        }
    }
}
