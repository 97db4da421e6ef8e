<?php

declare(strict_types=1);

namespace RedlockHyperf\Internal;

use Swoole\Coroutine;

/** @internal Settings of this coroutine, else the first that were made in this object. */
final class CoroutineSettings
{
    /** @var array<string, mixed> */
    private array $first = [];

    /** outside of coroutines */
    private readonly \stdClass $outside;

    public function __construct()
    {
        $this->outside = new \stdClass();
    }

    public function set(string $name, mixed $value): void
    {
        $this->first += [$name => $value];
        $this->own()->{$name} = $value;
    }

    public function get(string $name, mixed $default): mixed
    {
        return $this->own()->{$name} ?? $this->first[$name] ?? $default;
    }

    /** They go with the coroutine and with this object, whichever ends first. */
    private function own(): \stdClass
    {
        if (!\extension_loaded('swoole') || Coroutine::getCid() <= 0) {
            return $this->outside;
        }
        $context = Coroutine::getContext();
        $context[self::class] ??= new \WeakMap();
        return $context[self::class][$this] ??= new \stdClass();
    }
}
