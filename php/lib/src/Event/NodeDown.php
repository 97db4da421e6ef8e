<?php

declare(strict_types=1);

namespace Redlock\Event;

/** Its connection ended, or could not be made. */
final class NodeDown extends NodeEvent
{
}
