<?php

declare(strict_types=1);

namespace Redlock\Driver;

use Redlock\Native;

/**
 * Who waits for which operation. There is one list for the process (for each thread, in a PHP with threads), as the
 * native clients are shared: whoever reads a client's tags may find another driver's.
 *
 * @internal
 */
final class Tags
{
    private static int $last = 0;

    /** @var array<int, Waiter> */
    private static array $waiting = [];

    public static function add(Waiter $waiter): int
    {
        self::$waiting[++self::$last] = $waiter;
        return self::$last;
    }

    public static function remove(int $tag): void
    {
        unset(self::$waiting[$tag]);
    }

    /** Does what is due on the client and wakes those whose operation ended. */
    public static function process(Native\Client $client): void
    {
        for ($tag = $client->advance(); $tag !== null; $tag = $client->next()) {
            if (isset(self::$waiting[$tag])) {
                self::$waiting[$tag]->resume();
            }
        }
    }
}
