<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

use Redlock\Lock;
use Swoole\Coroutine;

/** @internal The locks that attributes hold in this coroutine. */
final class HeldHere
{
    /** @var array<string, Lock> outside of coroutines */
    private static array $outside = [];

    /** The lock that is held further out; null: none was taken, or the body has released it since. */
    public static function find(string $place, string $resource): ?Lock
    {
        $lock = self::all()["$place\n$resource"] ?? null;
        return $lock !== null && ($lock->isHeld() || $lock->isLost()) ? $lock : null;
    }

    public static function add(string $place, string $resource, Lock $lock): void
    {
        self::all()["$place\n$resource"] = $lock;
    }

    public static function remove(string $place, string $resource): void
    {
        unset(self::all()["$place\n$resource"]);
    }

    /** Runs a body whose lock is held further out as the innermost again: it is the lock that the body asks about. */
    public static function within(string $place, string $resource, \Closure $body): mixed
    {
        $held = &self::all();
        $before = $held;
        unset($held["$place\n$resource"]);
        $held["$place\n$resource"] = $before["$place\n$resource"];
        try {
            return $body();
        } finally {
            $held = $before;
        }
    }

    public static function innermost(): ?Lock
    {
        $held = self::all();
        return $held === [] ? null : \end($held);
    }

    /** @return array<string, Lock> in the order in which they were taken */
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
