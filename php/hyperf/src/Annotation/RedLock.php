<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Annotation;

use Hyperf\Di\Annotation\AbstractMultipleAnnotation;
use Redlock\Hyperf\LockSpec;

/**
 * The method runs while the lock is held; the lease is renewed meanwhile. On a class: all its public methods that are
 * not static and have no attribute of their own. Several: taken in order, released in reverse.
 */
#[\Attribute(\Attribute::TARGET_METHOD | \Attribute::TARGET_CLASS | \Attribute::IS_REPEATABLE)]
final class RedLock extends AbstractMultipleAnnotation
{
    /**
     * @param string $resource with values of the arguments: 'order:#{order.id}'
     * @param ?int $retryCount attempts after the first one
     * @param ?string $onBusy a public method with the same parameters, called when others hold the lock
     */
    public function __construct(
        public string $resource,
        public ?int $ttlMs = null,
        public ?int $waitMs = null,
        public ?int $retryCount = null,
        public string $cluster = 'default',
        public ?string $onBusy = null,
    ) {
    }

    public function spec(): LockSpec
    {
        $options = ['ttl_ms' => $this->ttlMs, 'wait_ms' => $this->waitMs, 'retry_count' => $this->retryCount];
        return new LockSpec($this->resource, $options, $this->cluster, null, $this->onBusy);
    }
}
