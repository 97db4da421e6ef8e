<?php

declare(strict_types=1);

namespace RedlockHyperf\Internal;

use RedlockHyperf\Exception\RedLockException;

/** @internal */
final class Compatibility
{
    /** What the annotation and the object call our options. */
    private const NAMES = ['ttlMs' => 'ttl', 'driftFactor' => 'clockDriftFactor'];

    /** The same in their exception, and outside of quoted values in their names. */
    public static function exception(\Throwable $cause): RedLockException
    {
        $message = \preg_replace_callback('/"[^"]*"(*SKIP)(*FAIL)|\b\w+\b/',
            static fn (array $word): string => self::NAMES[$word[0]] ?? $word[0], $cause->getMessage());
        return new RedLockException($message ?? $cause->getMessage(), (int) $cause->getCode(), $cause);
    }

    /**
     * Each pool once: it was allowed to name one twice.
     *
     * @param array<string> $pools
     * @return list<string>
     */
    public static function pools(array $pools): array
    {
        return \array_values(\array_unique($pools));
    }
}
