<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests\Unread;

use Redlock\Hyperf\Annotation\WithLock;

final class Anonymous
{
    public function make(): object
    {
        return new class {
            public string $order = '42';

            #[WithLock(resource: 'order:#{this.order}')]
            public function pay(): void
            {
            }
        };
    }
}
