<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests;

use Redlock\Hyperf\Annotation\WithLock;
use RedlockHyperf\Annotation\RedLockAnnotation;

#[WithLock('class', ttlMs: 1000)]
final class Annotated
{
    #[WithLock(resource: 'first', ttlMs: 5000)]
    #[WithLock('second', waitMs: 0)]
    public function new(): void
    {
    }

    #[RedLockAnnotation('annotation')]
    #[WithLock('new')]
    public function mixed(): void
    {
    }

    public function plain(): void
    {
    }

    private function hidden(): void
    {
    }
}
