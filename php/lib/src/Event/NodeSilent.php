<?php

declare(strict_types=1);

namespace Redlock\Event;

/** It is connected and does not answer. */
final class NodeSilent extends NodeEvent
{
}
