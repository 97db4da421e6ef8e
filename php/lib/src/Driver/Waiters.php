<?php

declare(strict_types=1);

namespace Redlock\Driver;

use Redlock\Native;
use Swoole\Coroutine;

/**
 * Those who wait for an operation: Swoole's coroutines by their number, else what has resume(). The extension keeps one
 * with each lock and gives it back when the operation has ended. Native clients are shared, so whoever asks one of them
 * may find another driver's waiter.
 *
 * @internal
 */
final class Waiters
{
    /** Does what is due on the client and wakes whoever's operation ended; for the turn of a loop. */
    public static function waker(Native\Client $client): \Closure
    {
        return static function () use ($client): void {
            for ($waiter = $client->advance(); $waiter !== null; $waiter = $client->next()) {
                \is_int($waiter) ? Coroutine::resume($waiter) : $waiter->resume();
            }
        };
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
