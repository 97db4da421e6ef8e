<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Annotation;

use Hyperf\Di\Annotation\AbstractMultipleAnnotation;
use Hyperf\Di\Annotation\AnnotationCollector;
use Redlock\Hyperf\LockSpec;

/**
 * The method runs while the lock is held; the lease is renewed meanwhile. On a class: all its public methods that are
 * not static and have no attribute of their own. Several: taken in order, released in reverse.
 */
#[\Attribute(\Attribute::TARGET_METHOD | \Attribute::TARGET_CLASS | \Attribute::IS_REPEATABLE)]
class WithLock extends AbstractMultipleAnnotation
{
    /** What Hyperf's AOP looks for: under its own name a subclass would lock nothing. */
    protected const NAME = self::class;

    /**
     * Options that are null are the cluster's.
     *
     * @param string|list<string> $resource with values of the arguments: 'order:#{order.id}'; of several the method has
     *     all or none
     * @param ?int $waitMs how long to wait while others hold the lock: 0 is one attempt, -1 without limit
     * @param ?int $retryCount attempts after the first one
     * @param string $cluster of config/autoload/redlock.php
     * @param ?string $onBusy a public method with the same parameters, called when others hold the lock; one more of
     *     the type BusyException is given the exception
     * @param ?int $retryDelayMs the longest pause between two attempts
     * @param ?bool $renew extend the lease while the method runs; null: yes
     * @param ?int $maxHoldMs no renewal reaches beyond this time after the lock was taken
     * @param ?int $outageWaitMs how long to put up with too few nodes
     * @param ?string $onNoQuorum a public method with the same parameters, called when too few nodes answered
     * @param ?string $onLost 'cancel': when the lock is lost the coroutine is cancelled, and LostException leaves
     * @param ?string $fence the parameter of the method that is given the fencing number of the lock
     * @param ?bool $shared hold the lock together with others that share it
     * @param ?int $permits how many may hold the resource at a time
     * @param ?string $layout 'hash': programs with a home-made lock, which is a hash, wait for this one
     * @param ?string $hold the parameter of the method that is given the hold: `?Hold $hold = null`
     */
    public function __construct(
        public string|array $resource,
        public ?int $ttlMs = null,
        public ?int $waitMs = null,
        public ?int $retryCount = null,
        public string $cluster = 'default',
        public ?string $onBusy = null,
        public ?int $retryDelayMs = null,
        public ?bool $renew = null,
        public ?int $maxHoldMs = null,
        public ?int $outageWaitMs = null,
        public ?string $onNoQuorum = null,
        public ?string $onLost = null,
        public ?string $fence = null,
        public ?bool $shared = null,
        public ?int $permits = null,
        public ?string $layout = null,
        public ?string $hold = null,
    ) {
    }

    public function collectClass(string $className): void
    {
        $others = AnnotationCollector::getClassAnnotation($className, static::NAME);
        AnnotationCollector::collectClass($className, static::NAME, $this->formatAnnotation($others));
    }

    public function collectMethod(string $className, ?string $target): void
    {
        $others = AnnotationCollector::getClassMethodAnnotation($className, $target)[static::NAME] ?? null;
        AnnotationCollector::collectMethod($className, $target, static::NAME, $this->formatAnnotation($others));
    }

    public function spec(): LockSpec
    {
        $options = ['ttl_ms' => $this->ttlMs, 'wait_ms' => $this->waitMs, 'retry_count' => $this->retryCount,
            'retry_delay_ms' => $this->retryDelayMs, 'renew' => $this->renew, 'max_hold_ms' => $this->maxHoldMs,
            'outage_wait_ms' => $this->outageWaitMs, 'shared' => $this->shared,
            'permits' => $this->permits, 'layout' => $this->layout, 'fence' => $this->fence === null ? null : true];
        return new LockSpec($this->resource, \array_filter($options, static fn (mixed $value): bool => $value !== null),
            $this->cluster, onBusy: $this->onBusy, onNoQuorum: $this->onNoQuorum, onLost: $this->onLost,
            fence: $this->fence, hold: $this->hold);
    }
}
