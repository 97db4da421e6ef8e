<?php

declare(strict_types=1);

namespace App\Controller;

use App\Service\Orders;
use Hyperf\Contract\StdoutLoggerInterface;
use Hyperf\HttpServer\Contract\RequestInterface;

class OrderController
{
    public function __construct(private readonly Orders $orders, private readonly StdoutLoggerInterface $logger)
    {
    }

    public function pay(RequestInterface $request): string
    {
        $id = (string) $request->input('id', '1');
        $this->logger->notice("asked to pay $id");
        return $this->orders->pay($id, (int) $request->input('ms', 20));
    }

    public function report(RequestInterface $request): string
    {
        return $this->orders->report((int) $request->input('ms', 200));
    }

    /** @return array<string, int> */
    public function numbers(): array
    {
        return ['pid' => \getmypid(), 'done' => $this->orders->done, 'most at once' => $this->orders->most];
    }
}
