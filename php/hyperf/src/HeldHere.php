<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

use Swoole\Coroutine;

/** @internal The resources that attributes hold in this coroutine. */
final class HeldHere
{
    /** @var array<string, true> outside of coroutines */
    private static array $outside = [];

    public static function has(string $place, string $resource): bool
    {
        return isset(self::all()["$place\n$resource"]);
    }

    public static function add(string $place, string $resource): void
    {
        self::all()["$place\n$resource"] = true;
    }

    public static function remove(string $place, string $resource): void
    {
        unset(self::all()["$place\n$resource"]);
    }

    /** @return array<string, true> */
    private static function &all(): array
    {
        if (!\extension_loaded('swoole') || Coroutine::getCid() <= 0) {
            return self::$outside;
        }
        $context = Coroutine::getContext();
        $context[self::class] ??= new \stdClass();
        $context[self::class]->held ??= [];
        return $context[self::class]->held;
    }
}
