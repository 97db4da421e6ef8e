<?php

declare(strict_types=1);

namespace Redlock\Tests;

final class Wait
{
    /** Waits until the condition holds; a bound keeps a broken test from hanging. */
    public static function until(callable $condition, string $what, float $limitS = 30.0): void
    {
        $end = \microtime(true) + $limitS;
        while (!$condition()) {
            if (\microtime(true) > $end) {
                throw new Late("waited $limitS s in vain for $what");
            }
            \usleep(2000);
        }
    }
}
