<?php

declare(strict_types=1);

namespace Redlock\Loop;

/** What a lock in a Fiber needs of an event loop. */
interface Loop
{
    /**
     * Calls $ready whenever the stream is readable, until unwatch().
     *
     * @param resource $stream
     * @param \Closure(): void $ready
     * @return mixed what unwatch() takes
     */
    public function watch($stream, \Closure $ready): mixed;

    public function unwatch(mixed $watch): void;

    /** For the Fiber that calls it. */
    public function suspension(): Suspension;
}
