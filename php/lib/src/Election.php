<?php

declare(strict_types=1);

namespace Redlock;

use Redlock\Exception\LostException;
use Redlock\Exception\RedlockThrowable;

/**
 * A candidate for the lead of a resource, of any number in all programs; two Fibers or coroutines that run it are two.
 * ClientInterface::election() makes it.
 */
final class Election
{
    /** What its lock has in any case, by the names of the table. */
    private const FIXED = ['renew' => true, 'fence' => true, 'wait_ms' => -1, 'shared' => false, 'permits' => 1,
        'layout' => 'string'];

    /** What its lock has unless something else is given: it stands by for as long as it takes. */
    private const USUAL = ['outage_wait_ms' => -1, 'max_hold_ms' => -1];

    private bool $isStopped = false;

    /** @internal */
    public function __construct(private readonly Lock $lock)
    {
    }

    /**
     * @internal
     * @param array<string, mixed> $options as given, by the names of the table
     * @return array<string, mixed> those of the lock
     */
    public static function options(array $options): array
    {
        $refused = self::FIXED + \array_flip(['reentrant', 'retry_count']);
        foreach (\array_intersect_key($options, $refused) as $name => $_) {
            $named = \array_key_first(Options::named([$name => 0]));
            throw new Exception\InvalidOptionException("an election has no option \"$named\": a candidate stands by "
                . 'until it leads, its lease is renewed, and the term is the fencing number');
        }
        return self::FIXED + $options + self::USUAL;
    }

    public function resource(): string
    {
        return $this->lock->resource();
    }

    /**
     * Waits until it leads, calls $body with the term, and gives the seat up when the body ends: what it returns, or
     * its own error, leaves. If the term was lost before, it stands by again; the body ends by itself then, or by
     * Term::check(). Null after stop().
     *
     * @template T
     * @param callable(Term): T $body
     * @return ?T
     */
    public function run(callable $body): mixed
    {
        while (!$this->isStopped) {
            $hasBegun = $endedInTime = false;
            try {
                return $this->lock->run(function (Term $term) use ($body, &$hasBegun, &$endedInTime): mixed {
                    if ($this->isStopped) {
                        return null;
                    }
                    $hasBegun = true;
                    $result = $body($term);
                    $endedInTime = $term->isHeld();
                    return $result;
                });
            } catch (LostException $lost) {
                if ($endedInTime) {
                    return $lost->result; /* the release has found out */
                }
                if ($lost->resource !== $this->lock->resource()) {
                    throw $lost;
                }
            } catch (RedlockThrowable $refused) {
                if ($hasBegun || !$this->isStopped) {
                    throw $refused;
                }
            }
        }
        return null;
    }

    /**
     * Stops standing by, all that run it: waits end at once, in whatever Fiber or coroutine; a body is not interrupted,
     * and its lock not taken again if it was lost. For signal handlers too.
     */
    public function stop(): void
    {
        $this->isStopped = true;
        $this->lock->stop();
    }

    private function __clone()
    {
    }
}
