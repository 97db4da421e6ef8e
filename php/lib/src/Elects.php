<?php

declare(strict_types=1);

namespace Redlock;

use Redlock\Exception\InvalidOptionException;

/** @internal The elections of a client. */
trait Elects
{
    /** @param never ...$unknown */
    public function election(
        string $resource,
        /* options of locks: made by ./dev docs */
        ?int $ttlMs = null, ?int $waitMs = null, ?int $outageWaitMs = null, ?int $retryCount = null,
        ?int $retryDelayMs = null, ?float $retryJitter = null, ?bool $queue = null, ?bool $fence = null,
        ?bool $shared = null, ?int $permits = null, ?int $slot = null, ?string $layout = null,
        ?float $driftFactor = null, int|string|null $nodeTimeoutMs = null, int|string|null $minValidityMs = null,
        ?bool $renew = null, ?bool $reentrant = null, ?int $maxExtensions = null, ?int $maxHoldMs = null,
        ?bool $strictRelease = null,
        /* end of options */
        mixed ...$unknown,
    ): Election {
        $options = Election::options(Options::given(\get_defined_vars(), $unknown));
        try {
            return new Election($this->lockFromArray($resource, $options)->remade([], type: Term::class));
        } catch (InvalidOptionException $refused) {
            throw Options::inNames($refused);
        }
    }
}
