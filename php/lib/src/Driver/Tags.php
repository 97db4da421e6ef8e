<?php

declare(strict_types=1);

namespace Redlock\Driver;

use Redlock\Native;

/**
 * Who waits for which operation. There is one list for the process: native clients are shared, so whoever reads a
 * client's tags may find another driver's.
 *
 * @internal
 */
final class Tags
{
    private static int $last = 0;

    /** @var array<int, \Closure(): void> */
    private static array $waiting = [];

    /** @param \Closure(): void $wake */
    public static function add(Native\Lock $lock, \Closure $wake): int
    {
        $tag = ++self::$last;
        self::$waiting[$tag] = $wake;
        $lock->setTag($tag);
        return $tag;
    }

    public static function remove(int $tag): void
    {
        unset(self::$waiting[$tag]);
    }

    /** Does what is due on the client and wakes those whose operation ended. */
    public static function process(Native\Client $client): void
    {
        $client->process();
        while (($tag = $client->next()) !== null) {
            if (isset(self::$waiting[$tag])) {
                (self::$waiting[$tag])();
            }
        }
    }
}
