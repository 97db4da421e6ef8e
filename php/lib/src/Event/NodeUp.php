<?php

declare(strict_types=1);

namespace Redlock\Event;

/** It is connected and set up. */
final class NodeUp extends NodeEvent
{
}
