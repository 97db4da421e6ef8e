<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests\Heirs;

use Redlock\Hyperf\Annotation\WithLock;

abstract class Payment
{
    #[WithLock('pay')]
    public function pay(): void
    {
    }
}
