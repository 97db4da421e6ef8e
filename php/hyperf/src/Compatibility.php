<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

use RedlockHyperf\Exception\RedLockException;

/** @internal */
final class Compatibility
{
    public static function exception(\Throwable $cause): RedLockException
    {
        return new RedLockException($cause->getMessage(), (int) $cause->getCode(), $cause);
    }
}
