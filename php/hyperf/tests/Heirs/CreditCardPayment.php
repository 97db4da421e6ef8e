<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests\Heirs;

#[\AllowDynamicProperties] final class CreditCardPayment extends \Redlock\Hyperf\Tests\Heirs\CardPayment
{
    public function pay(): void
    {
    }
}
