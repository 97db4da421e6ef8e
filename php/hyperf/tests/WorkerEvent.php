<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests;

use Swoole\Server;

/** What Hyperf dispatches when a worker starts and ends. */
final class WorkerEvent
{
    public static function make(string $class, int $worker = 3): object
    {
        return new $class((new \ReflectionClass(Server::class))->newInstanceWithoutConstructor(), $worker);
    }
}
