<?php

declare(strict_types=1);

namespace RedlockHyperf\Exception;

/** @deprecated catch Redlock\Exception\BusyException, NoQuorumException, ... */
class RedLockException extends \RuntimeException
{
}
