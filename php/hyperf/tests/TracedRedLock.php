<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests;

use RedlockHyperf\RedLock;

/** Overrides every method of redlock-hyperf's class by its signature there. */
final class TracedRedLock extends RedLock
{
    /** @var list<string> */
    public array $called = [];

    public function setRedisPoolName(array $poolName = ['default']): RedLock
    {
        $this->called[] = __FUNCTION__;
        return parent::setRedisPoolName($poolName);
    }

    public function setRetryDelay(int $retryDelay = 200): RedLock
    {
        $this->called[] = __FUNCTION__;
        return parent::setRetryDelay($retryDelay);
    }

    public function setRetryCount(int $retryCount = 2): RedLock
    {
        $this->called[] = __FUNCTION__;
        return parent::setRetryCount($retryCount);
    }

    public function setClockDriftFactor(float $clockDriftFactor = 0.01): RedLock
    {
        $this->called[] = __FUNCTION__;
        return parent::setClockDriftFactor($clockDriftFactor);
    }

    public function lock($resource, int $ttl)
    {
        $this->called[] = __FUNCTION__;
        return parent::lock($resource, $ttl);
    }

    public function unlock(array $lock)
    {
        $this->called[] = __FUNCTION__;
        return parent::unlock($lock);
    }
}
