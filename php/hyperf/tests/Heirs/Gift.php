<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests\Heirs;

class Gift
{
    use Refundable;

    public function refund(): void
    {
    }
}
