<?php

declare(strict_types=1);

namespace Redlock\Event;

final class Acquired extends LockEvent
{
    /**
     * @param int $remainingMs how long it is held without an extension
     * @param int $waitedMs from the call to the lock
     * @param ?int $fence the fencing number, with the option fence
     */
    public function __construct(
        string $resource,
        public readonly string $token,
        public readonly int $remainingMs,
        public readonly int $waitedMs,
        public readonly int $attempts,
        public readonly ?int $fence,
    ) {
        parent::__construct($resource);
    }
}
