<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

use Redlock\Exception\InvalidOptionException;
use Redlock\Hold;
use Swoole\Coroutine;

/** @internal The holds of attributes in this coroutine, of Swoole or Swow, or in this Fiber. */
final class HeldHere
{
    /** @var ?\WeakMap<object, \stdClass> by coroutine or Fiber; itself stands for code outside of them */
    private static ?\WeakMap $held = null;

    /**
     * The hold further out that has the resources; null: none was taken, or the body has released it since.
     *
     * @param non-empty-list<string> $resources
     * @throws InvalidOptionException only some of them are held, or by several locks
     */
    public static function find(string $place, array $resources, string $method): ?Hold
    {
        $first = self::holding($place, $resources[0]);
        foreach ($resources as $other) {
            self::holding($place, $other) === $first || throw new InvalidOptionException("$method: \"$resources[0]\" "
                . "and \"$other\" are not held by one lock further out, and would be waited for for ever: take all of "
                . 'them there');
        }
        return $first;
    }

    private static function holding(string $place, string $resource): ?Hold
    {
        $hold = self::all()["$place\n$resource"] ?? null;
        return $hold?->hasEnded() ? null : $hold;
    }

    /** @param list<string> $resources */
    public static function add(string $place, array $resources, Hold $hold): void
    {
        foreach ($resources as $resource) {
            self::all()["$place\n$resource"] = $hold;
        }
    }

    /** @param list<string> $resources */
    public static function remove(string $place, array $resources): void
    {
        foreach ($resources as $resource) {
            unset(self::all()["$place\n$resource"]);
        }
    }

    /**
     * Runs a body whose lock is held further out as the innermost again: it is the lock that the body asks about.
     *
     * @param list<string> $resources
     */
    public static function within(string $place, array $resources, Hold $hold, \Closure $body): mixed
    {
        $held = &self::all();
        $before = $held;
        self::remove($place, $resources);
        self::add($place, $resources, $hold);
        try {
            return $body();
        } finally {
            $held = $before;
        }
    }

    public static function innermost(): ?Hold
    {
        $held = self::all();
        return $held === [] ? null : \end($held);
    }

    /** @return array<string, Hold> in the order in which they were taken */
    private static function &all(): array
    {
        self::$held ??= new \WeakMap();
        $here = match (true) {
            \extension_loaded('swoole') && Coroutine::getCid() > 0 => Coroutine::getContext(),
            \extension_loaded('swow') => \Swow\Coroutine::getCurrent(),
            default => \Fiber::getCurrent() ?? self::$held,
        };
        $all = self::$held[$here] ??= (object) ['of' => []];
        return $all->of;
    }
}
