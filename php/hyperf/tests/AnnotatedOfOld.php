<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests;

use Redlock\Hyperf\Annotation\RedLock;

#[RedLock('class')]
final class AnnotatedOfOld
{
    public function plain(): void
    {
    }
}
