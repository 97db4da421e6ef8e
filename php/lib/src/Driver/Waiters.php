<?php

declare(strict_types=1);

namespace Redlock\Driver;

use Redlock\Native;
use Swoole\Coroutine;

/**
 * Waiters of operations: Swoole's coroutines by their number, else objects with resume(). The extension keeps one with
 * each lock and gives it back when the operation has ended. Native clients are shared, so a caller may get another
 * driver's waiter.
 *
 * @internal
 */
final class Waiters
{
    /** Does the due work of the client and wakes the owners of ended operations; for one turn of a loop. */
    public static function waker(Native\Client $client): \Closure
    {
        return static function () use ($client): void {
            for ($waiter = $client->advance(); $waiter !== null; $waiter = $client->next()) {
                self::resume($waiter);
            }
        };
    }

    public static function resume(mixed $waiter): void
    {
        if (\is_int($waiter)) {
            Coroutine::resume($waiter);
            return;
        }
        $isKilled = $waiter instanceof \Swow\Coroutine && !$waiter->isAlive();
        $isKilled || $waiter->resume();
    }

    /** @return resource the client's descriptor, for loops that take streams */
    public static function open(Native\Client $client)
    {
        if (!\in_array(\PHP_SAPI, ['cli', 'phpdbg'], true)) {
            throw new \RuntimeException(
                'locks in Fibers need php://fd, which PHP has only on the command line, not under '
                . \PHP_SAPI . ': connect without a loop there');
        }
        $number = $client->fd();
        return @\fopen("php://fd/$number", 'r') ?: throw new \RuntimeException("the client's descriptor can not be "
            . "opened as php://fd/$number: " . (\error_get_last()['message'] ?? ''));
    }
}
