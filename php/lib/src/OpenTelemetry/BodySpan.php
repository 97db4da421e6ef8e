<?php

declare(strict_types=1);

namespace Redlock\OpenTelemetry;

use OpenTelemetry\API\Common\Time\Clock;
use OpenTelemetry\API\Trace\SpanInterface;
use OpenTelemetry\API\Trace\StatusCode;
use OpenTelemetry\Context\ScopeInterface;
use Redlock\Exception\ForkedException;
use Redlock\Exception\LostException;
use Redlock\Hold;

/** @internal The span of a body of run(), redlock.hold, which is the current one in it. */
final class BodySpan
{
    private readonly ScopeInterface $scope;
    private ?int $endedNs = null;
    private bool $isLost = false;

    public function __construct(private readonly SpanInterface $span)
    {
        $this->scope = $span->activate();
    }

    /** The body has ended; the result of the release can still be added. */
    public function leave(?\Throwable $failure): void
    {
        $this->scope->detach();
        $this->endedNs = Clock::getDefault()->now();
        $failure === null || Spans::fail($this->span, $failure);
    }

    /** @param Hold $hold one that is lost */
    public function lose(Hold $hold): void
    {
        try {
            $hold->check();
        } catch (LostException $lost) {
            $this->lost($lost);
        } catch (ForkedException) {
            /* the parent's */
        }
    }

    public function lost(LostException $lost): void
    {
        if ($this->isLost) {
            return;
        }
        $this->isLost = true;
        $message = $lost->getMessage();
        $this->span->addEvent('redlock.lost', ['redlock.loss' => $lost->reason, 'message' => $message]);
        $this->span->setAttribute('redlock.loss', $lost->reason);
        $this->span->setStatus(StatusCode::STATUS_ERROR, $message);
    }

    public function end(): void
    {
        Spans::end($this->span, $this->endedNs);
    }
}
