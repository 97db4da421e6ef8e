<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests\Heirs;

use Redlock\Hyperf\Annotation\WithLock;

trait Refundable
{
    #[WithLock('refund')]
    public function refund(): void
    {
    }

    #[WithLock('cancel')]
    public function cancel(): void
    {
    }
}
