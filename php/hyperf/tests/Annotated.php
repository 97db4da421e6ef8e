<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests;

use Redlock\Hyperf\Annotation\RedLock;
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

    #[RedLock(resource: 'first', ttlMs: 5000)]
    #[RedLock('second', waitMs: 0)]
    public function old(): void
    {
    }

    #[RedLockAnnotation('annotation')]
    #[RedLock('old')]
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
