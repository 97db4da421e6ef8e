<?php

declare(strict_types=1);

namespace Redlock\OpenTelemetry;

use OpenTelemetry\API\Common\Time\Clock;
use OpenTelemetry\API\Trace\SpanInterface;
use OpenTelemetry\API\Trace\StatusCode;
use OpenTelemetry\Context\ScopeInterface;

/** @internal The span of a body of run(), which is the current one in it. */
final class Hold
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

    public function lose(string $message, ?string $reason): void
    {
        if ($this->isLost) {
            return;
        }
        $this->isLost = true;
        $attributes = $reason === null ? [] : ['redlock.loss' => $reason];
        $this->span->addEvent('redlock.lost', $attributes + ['message' => $message]);
        $this->span->setAttributes($attributes);
        $this->span->setStatus(StatusCode::STATUS_ERROR, $message);
    }

    public function end(): void
    {
        Spans::end($this->span, $this->endedNs);
    }
}
