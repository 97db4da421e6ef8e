<?php

declare(strict_types=1);

namespace Redlock\Event;

/** Events were dropped because they were not read in time: how many. */
final class Dropped
{
    public function __construct(public readonly int $count)
    {
    }
}
