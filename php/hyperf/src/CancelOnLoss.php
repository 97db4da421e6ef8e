<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

use Redlock\Exception\LostException;
use Redlock\Hold;
use Swoole\Coroutine;
use Swoole\Coroutine\CanceledException;
use Swoole\Timer;

/** @internal Ends a body whose lock is lost: its coroutine is cancelled, and what leaves is LostException. */
final class CancelOnLoss
{
    /** How late a loss before the end of the lease may be noticed; the end itself is met by its own timer. */
    private const LOOK_MS = 50;

    private int $timer = 0;
    private ?string $why = null;

    private function __construct(private readonly Hold $hold, private readonly int $coroutine)
    {
        $this->lookLater();
    }

    public static function isPossible(): bool
    {
        return \extension_loaded('swoole')
            && (new \ReflectionMethod(Coroutine::class, 'cancel'))->getNumberOfParameters() > 1;
    }

    /** @param \Closure(): mixed $body */
    public static function around(Hold $hold, \Closure $body): mixed
    {
        if (!\extension_loaded('swoole') || Coroutine::getCid() <= 0) {
            return $body(); /* nothing is there to be cancelled: run() tells of the loss afterwards */
        }
        $watch = new self($hold, Coroutine::getCid());
        try {
            return $body();
        } catch (CanceledException $cancelled) {
            throw $watch->why === null ? $cancelled : $watch->lost($cancelled);
        } finally {
            Timer::clear($watch->timer);
        }
    }

    private function lookLater(): void
    {
        $ms = \max(1, \min(self::LOOK_MS, $this->hold->remainingMs() + 1));
        $this->timer = Timer::after($ms, $this->look(...));
    }

    private function look(): void
    {
        if ($this->hold->isLost()) {
            $this->why = $this->hold->message();
            Coroutine::cancel($this->coroutine, true);
        } elseif ($this->hold->isHeld()) { /* else the body has released it */
            $this->lookLater();
        }
    }

    private function lost(CanceledException $cancelled): LostException
    {
        $lost = new LostException("the call was cancelled: $this->why", previous: $cancelled);
        $lost->resource = $this->hold->resource();
        $lost->votes = $this->hold->votes();
        return $lost;
    }
}
