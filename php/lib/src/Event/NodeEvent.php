<?php

declare(strict_types=1);

namespace Redlock\Event;

/** Something happened to a node. Listen to this class for all of them. */
abstract class NodeEvent
{
    /** @param int $atMs when, in milliseconds since 1970 */
    final public function __construct(
        public readonly string $node,
        public readonly string $detail,
        public readonly int $atMs,
    ) {
    }
}
