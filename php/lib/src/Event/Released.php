<?php

declare(strict_types=1);

namespace Redlock\Event;

final class Released extends LockEvent
{
    /** @param ?int $heldMs null: it was taken over by its token, or acquired before anybody listened */
    public function __construct(string $resource, public readonly ?int $heldMs)
    {
        parent::__construct($resource);
    }
}
