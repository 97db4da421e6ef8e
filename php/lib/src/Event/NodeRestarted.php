<?php

declare(strict_types=1);

namespace Redlock\Event;

/** It came back with another run_id. */
final class NodeRestarted extends NodeEvent
{
}
