<?php

declare(strict_types=1);

namespace Redlock\Driver;

/** @internal Somebody whose operation may have ended. */
interface Waiter
{
    public function resume(): void;
}
