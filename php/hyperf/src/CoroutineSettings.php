<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

use Swoole\Coroutine;

/** @internal Settings of this coroutine, else the first that were made in the process. */
final class CoroutineSettings
{
    /** @var array<string, mixed> */
    private array $first = [];

    /** @var array<string, mixed> outside of coroutines */
    private array $outside = [];

    public function set(string $name, mixed $value): void
    {
        $this->first += [$name => $value];
        $this->own()[$name] = $value;
    }

    public function get(string $name, mixed $default): mixed
    {
        return $this->own()[$name] ?? $this->first[$name] ?? $default;
    }

    /** @return array<string, mixed> */
    private function &own(): array
    {
        if (!\extension_loaded('swoole') || Coroutine::getCid() <= 0) {
            return $this->outside;
        }
        $context = Coroutine::getContext();
        $key = self::class . \spl_object_id($this);
        $context[$key] ??= new \stdClass();
        $context[$key]->settings ??= [];
        return $context[$key]->settings;
    }
}
