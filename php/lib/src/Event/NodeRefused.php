<?php

declare(strict_types=1);

namespace Redlock\Event;

/** It may not vote: a replica, for example. */
final class NodeRefused extends NodeEvent
{
}
