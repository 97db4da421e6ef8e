<?php

declare(strict_types=1);

namespace Redlock\Event;

/** Something that an operator should know. */
final class Warning
{
    /** @param ?string $node which it is about; null: the client */
    public function __construct(
        public readonly ?string $node,
        public readonly string $detail,
        public readonly int $atMs,
    ) {
    }
}
