<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests\Heirs;

use Redlock\Hyperf\Tests\Heirs\Payment as Base;

abstract class CardPayment extends Base
{
}
