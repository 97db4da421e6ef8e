<?php

declare(strict_types=1);

namespace App\Service;

use Hyperf\Contract\StdoutLoggerInterface;
use Hyperf\Coroutine\Coroutine;
use Redlock\Hyperf\Annotation\WithLock;

class Orders
{
    /** @var array<int|string, int> what this worker sees of each order: how many calls are inside */
    public array $inside = [];

    public int $most = 0;
    public int $done = 0;

    public function __construct(private readonly StdoutLoggerInterface $logger)
    {
    }

    /** One call at a time for each order, over all workers and machines. */
    #[WithLock(resource: 'order:#{id}')]
    public function pay(string $id, int $ms): string
    {
        $this->inside[$id] = ($this->inside[$id] ?? 0) + 1;
        $this->most = \max($this->most, $this->inside[$id]);
        try {
            Coroutine::sleep($ms / 1000);
            $this->done++;
            $this->logger->notice("paid $id");
            return "paid $id";
        } finally {
            if (--$this->inside[$id] === 0) {
                unset($this->inside[$id]);
            }
        }
    }

    /** Two resources, taken in this order; who comes while others hold them is answered at once. */
    #[WithLock(resource: 'report', waitMs: 0, onBusy: 'later')]
    #[WithLock(resource: 'report:data', waitMs: 0)]
    public function report(int $ms): string
    {
        Coroutine::sleep($ms / 1000);
        return 'report';
    }

    public function later(int $ms): string
    {
        return 'come later';
    }
}
