<?php

declare(strict_types=1);

namespace Redlock\Driver;

use Redlock\Native;
use Swoole\Coroutine;
use Swoole\Event;

/**
 * A native client's descriptor in Swoole's event loop: while something is pending and for a moment longer, as adding it
 * costs more than an operation does.
 *
 * A coroutine in System::waitEvent() is no way to do this: if its time-out or its cancellation comes in the turn of the
 * event, Swoole (6.2) still resumes it when it may have ended, and the worker crashes.
 *
 * @internal
 */
final class SwooleWatch
{
    private const LEAVE_AFTER_S = 0.01;

    /** @var array<int, \WeakReference<self>> by the id of the native client: a descriptor is in the loop once */
    private static array $all = [];

    public int $pending = 0;
    public int $begun = 0;
    /** The process in whose loop it is, as Native\Client::generation() counts them; 0: in none. */
    public int $generation = 0;
    private readonly int $fd;
    private readonly \Closure $ready;

    public static function of(Native\Client $client): self
    {
        $watch = (self::$all[$client->id()] ?? null)?->get();
        if ($watch === null) {
            self::$all = \array_filter(self::$all, static fn (\WeakReference $r): bool => $r->get() !== null);
            $watch = new self($client);
            self::$all[$client->id()] = \WeakReference::create($watch);
        }
        return $watch;
    }

    private function __construct(Native\Client $client)
    {
        $this->fd = $client->fd();
        $wake = Waiters::waker($client);
        $this->ready = static function () use ($wake): void {
            /* a server without enable_coroutine calls from outside of coroutines */
            Coroutine::getCid() > 0 ? $wake() : Coroutine::create($wake);
        };
    }

    public function begin(int $generation): void
    {
        if ($this->generation !== 0) { /* coroutines and loop were those of the parent */
            $this->pending = 0;
        }
        if (Event::add($this->fd, $this->ready, null, \SWOOLE_EVENT_READ) === false) {
            throw new \RuntimeException("Swoole can not watch the client's descriptor $this->fd: "
                . \swoole_strerror(\swoole_last_error()));
        }
        $this->generation = $generation;
        $this->leaveLater();
    }

    /** Removes the descriptor when idle, since it would keep the loop alive. Timer::clearAll() ends no sleep. */
    private function leaveLater(): void
    {
        Coroutine::create(function (): void {
            do {
                $begun = $this->begun;
                Coroutine::sleep(self::LEAVE_AFTER_S);
            } while ($this->pending > 0 || $this->begun > $begun);
            $this->generation = 0;
            Event::del($this->fd);
        });
    }
}
