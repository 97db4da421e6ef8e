<?php

declare(strict_types=1);

namespace Redlock\Tests;

/** Something has not come within its time. A case that fails by nothing else is run again: tests/tools/late.py. */
final class Late extends \PHPUnit\Framework\AssertionFailedError
{
}
