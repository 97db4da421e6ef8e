<?php

declare(strict_types=1);

namespace RedlockHyperf\Annotation;

use Hyperf\Di\Annotation\AbstractAnnotation;
use Hyperf\Di\Annotation\AnnotationCollector;
use Redlock\Hyperf\LockSpec;
use RedlockHyperf\Internal\Attempts;
use RedlockHyperf\Internal\Compatibility;

/** @deprecated write #[Redlock\Hyperf\Annotation\WithLock(resource: ..., ttlMs: ..., cluster: ...)] */
#[\Attribute(\Attribute::TARGET_METHOD)]
class RedLockAnnotation extends AbstractAnnotation
{
    private const UNCHOSEN_TTL = 60000;

    /* Without types, as they were: subclasses declare them again. */

    /** @var list<string> redis pools */
    public $poolName = ['default'];

    /** @var int ms */
    public $retryDelay = 200;

    /** @var int attempts in all */
    public $retryCount = 2;

    /** @var float */
    public $clockDriftFactor = 0.01;

    /** @var int ms; 60000, the default, stands for the TTL of the client */
    public $ttl = self::UNCHOSEN_TTL;

    /** @var string */
    public $resource;

    /** @param ?list<string> $poolName null here and below: the value of the property */
    public function __construct(
        string $resource = '',
        ?array $poolName = null,
        ?int $retryDelay = null,
        ?int $retryCount = null,
        ?float $clockDriftFactor = null,
        ?int $ttl = null,
    ) {
        $this->resource = $resource === '' ? (string) $this->resource : $resource;
        $this->poolName = $poolName ?? $this->poolName;
        $this->retryDelay = $retryDelay ?? $this->retryDelay;
        $this->retryCount = $retryCount ?? $this->retryCount;
        $this->clockDriftFactor = $clockDriftFactor ?? $this->clockDriftFactor;
        $this->ttl = $ttl ?? $this->ttl;
    }

    /** Under the name that Hyperf's AOP looks for: under its own a subclass would lock nothing. */
    public function collectMethod(string $className, ?string $target): void
    {
        AnnotationCollector::collectMethod($className, $target, self::class, $this);
    }

    public function spec(): LockSpec
    {
        return new LockSpec(
            $this->resource,
            ($this->ttl === self::UNCHOSEN_TTL ? [] : ['ttl_ms' => $this->ttl])
                + ['drift_factor' => $this->clockDriftFactor, 'wait_ms' => 0],
            pools: Compatibility::pools($this->poolName),
            translate: Compatibility::exception(...),
            repeat: (new Attempts($this->retryCount, $this->retryDelay))->make(...),
        );
    }
}
