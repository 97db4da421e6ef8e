<?php

declare(strict_types=1);

namespace RedlockHyperf\Internal;

use Redlock\Exception\BusyException;
use Redlock\Exception\NoQuorumException;
use Redlock\Exception\TimedOutException;
use Swoole\Coroutine;

/** @internal Attempts as redlock-hyperf made them: a number in all, with pauses of half a delay to a whole one. */
final class Attempts
{
    /** @param int $count in all; fewer than one still makes one */
    public function __construct(private readonly int $count, private readonly int $delayMs)
    {
    }

    /**
     * @param \Closure(): mixed $attempt
     * @param ?\Closure(): bool $mayRepeat asked after a failure
     */
    public function make(\Closure $attempt, ?\Closure $mayRepeat = null): mixed
    {
        for ($left = $this->count;; $left--) {
            try {
                return $attempt();
            } catch (BusyException | NoQuorumException | TimedOutException $refused) {
                if ($left <= 1 || ($mayRepeat !== null && !$mayRepeat())) {
                    throw $refused;
                }
            }
            $ms = \max(1, \random_int(\intdiv($this->delayMs, 2), \max(1, $this->delayMs)));
            \extension_loaded('swoole') && Coroutine::getCid() > 0
                ? Coroutine::sleep($ms / 1000) : \usleep($ms * 1000);
        }
    }
}
