<?php

declare(strict_types=1);

namespace Redlock\Event;

/** More happened than was asked for in time: so many events are not told. */
final class Dropped
{
    public function __construct(public readonly int $count)
    {
    }
}
