<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests;

use RedlockHyperf\Annotation\RedLockAnnotation;

/** Declares the properties of redlock-hyperf's annotation again, with defaults of its own. */
#[\Attribute(\Attribute::TARGET_METHOD)]
final class OrderLock extends RedLockAnnotation
{
    public $poolName = ['r0', 'r1', 'r2'];
    public $retryDelay = 50;
    public $retryCount = 4;
    public $clockDriftFactor = 0.02;
    public $ttl = 5000;
    public $resource = 'order';
}
