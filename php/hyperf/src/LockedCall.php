<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

use Redlock\Exception\BusyException;
use Redlock\Exception\InvalidOptionException;
use Redlock\Exception\NoQuorumException;
use Redlock\Exception\RedlockThrowable;
use Redlock\Lock;

/** @internal A method call under the locks of its attributes: taken in order, released in reverse. */
final class LockedCall
{
    /**
     * @param string $method as messages show it: Class::method
     * @param array<string, mixed> $arguments by name
     * @param list<mixed> $positional the same in order, as onBusy and onNoQuorum are called
     * @param ?object $instance has the methods that they name
     * @param \Closure(): mixed $body
     */
    public function __construct(
        private readonly Locks $locks,
        private readonly string $method,
        private readonly array $arguments,
        private readonly array $positional,
        private readonly ?object $instance,
        private readonly \Closure $body,
    ) {
    }

    /** @param list<LockSpec> $specs */
    public function run(array $specs): mixed
    {
        $spec = \array_shift($specs);
        if ($spec === null) {
            return ($this->body)();
        }
        $resource = (new Template($spec->resource, $this->method))->render($this->arguments);
        if (HeldHere::has($spec->place(), $resource)) {
            return HeldHere::within($spec->place(), $resource, fn (): mixed => $this->run($specs));
        }
        return $this->under($spec, $resource, $specs);
    }

    /** @param list<LockSpec> $rest */
    private function under(LockSpec $spec, string $resource, array $rest): mixed
    {
        $entered = false;
        try {
            $lock = $this->locks->lockFor($spec, $resource);
            $body = function () use ($spec, $lock, $rest, &$entered): mixed {
                $entered = true;
                return $this->holding($spec, $lock, $rest);
            };
            $mayRepeat = static function () use (&$entered): bool {
                return !$entered;
            };
            return $spec->attempts->make(static fn (): mixed => $lock->run($body), $mayRepeat);
        } catch (RedlockThrowable $refused) {
            if ($entered) {
                throw $refused; /* the body's own, or the loss of the lock */
            }
            $instead = $this->instead($spec, $refused);
            if ($instead === null) {
                throw $spec->translate === null ? $refused : ($spec->translate)($refused);
            }
        }
        return $instead(...$this->positional);
    }

    /** @param list<LockSpec> $rest */
    private function holding(LockSpec $spec, Lock $lock, array $rest): mixed
    {
        HeldHere::add($spec->place(), $lock->resource, $lock);
        try {
            return $spec->onLost === null ? $this->run($rest) : CancelOnLoss::around($lock, fn () => $this->run($rest));
        } finally {
            HeldHere::remove($spec->place(), $lock->resource);
        }
    }

    /** What is called when the lock was refused, if the attribute names it. */
    private function instead(LockSpec $spec, RedlockThrowable $refused): ?callable
    {
        [$option, $method] = match (true) {
            $refused instanceof BusyException => ['onBusy', $spec->onBusy],
            $refused instanceof NoQuorumException => ['onNoQuorum', $spec->onNoQuorum],
            default => ['', null],
        };
        if ($method !== null && !\is_callable([$this->instance, $method])) {
            throw new InvalidOptionException(
                "$this->method: $option is '$method', which is no public method of the object");
        }
        return $method === null ? null : [$this->instance, $method];
    }
}
