<?php

declare(strict_types=1);

namespace RedlockHyperf\Annotation;

use Hyperf\Di\Annotation\AbstractAnnotation;
use Redlock\Hyperf\Attempts;
use Redlock\Hyperf\Compatibility;
use Redlock\Hyperf\LockSpec;

/** @deprecated write #[Redlock\Hyperf\Annotation\RedLock(resource: ..., ttlMs: ..., cluster: ...)] */
#[\Attribute(\Attribute::TARGET_METHOD)]
class RedLockAnnotation extends AbstractAnnotation
{
    /**
     * @param list<string> $poolName redis pools
     * @param int $retryDelay ms
     * @param int $retryCount attempts in all
     * @param int $ttl ms
     */
    public function __construct(
        public string $resource = '',
        public array $poolName = ['default'],
        public int $retryDelay = 200,
        public int $retryCount = 2,
        public float $clockDriftFactor = 0.01,
        public int $ttl = 60000,
    ) {
    }

    public function spec(): LockSpec
    {
        return new LockSpec(
            $this->resource,
            ['ttl_ms' => $this->ttl, 'drift_factor' => $this->clockDriftFactor, 'wait_ms' => 0],
            pools: Compatibility::pools($this->poolName),
            translate: Compatibility::exception(...),
            attempts: new Attempts($this->retryCount, $this->retryDelay),
        );
    }
}
