<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Annotation;

/** @deprecated write #[WithLock(...)], which takes the same; on one method, those named WithLock are acquired first */
#[\Attribute(\Attribute::TARGET_METHOD | \Attribute::TARGET_CLASS | \Attribute::IS_REPEATABLE)]
final class RedLock extends WithLock
{
    protected const NAME = self::class;

    public function __construct(string|array $resource, mixed ...$options)
    {
        parent::__construct($resource, ...$options);
        /* without the @, a handler that throws would stop the boot */
        @\trigger_error('the attribute ' . self::class . ' is deprecated: write ' . WithLock::class,
            \E_USER_DEPRECATED);
    }
}
