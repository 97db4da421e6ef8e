<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

use Redlock\Exception\BusyException;
use Redlock\Exception\InvalidOptionException;
use Redlock\Exception\RedlockThrowable;

/** @internal A method call under the locks of its attributes: taken in order, released in reverse. */
final class LockedCall
{
    /**
     * @param string $method as messages show it: Class::method
     * @param array<string, mixed> $arguments by name
     * @param list<mixed> $positional the same in order, as onBusy is called
     * @param ?object $instance has the methods that onBusy names
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
            return $this->run($specs); /* this coroutine holds it already, further out */
        }
        return $this->under($spec, $resource, $specs);
    }

    /** @param list<LockSpec> $rest */
    private function under(LockSpec $spec, string $resource, array $rest): mixed
    {
        $entered = false;
        try {
            $client = $spec->client($this->locks);
            $lock = $this->locks->lockOf($client, $resource, $spec->optionsFor($client));
            $body = function () use ($spec, $resource, $rest, &$entered): mixed {
                $entered = true;
                HeldHere::add($spec->place(), $resource);
                try {
                    return $this->run($rest);
                } finally {
                    HeldHere::remove($spec->place(), $resource);
                }
            };
            $mayRepeat = static function () use (&$entered): bool {
                return !$entered;
            };
            return $spec->attempts->make(static fn (): mixed => $lock->run($body), $mayRepeat);
        } catch (RedlockThrowable $refused) {
            if ($entered) {
                throw $refused; /* the body's own, or the loss of the lock */
            }
            if ($spec->onBusy !== null && $refused instanceof BusyException) {
                return $this->callInstead($spec->onBusy);
            }
            throw $spec->translate === null ? $refused : ($spec->translate)($refused);
        } finally {
            $this->locks->closeIfIdle();
        }
    }

    private function callInstead(string $onBusy): mixed
    {
        if ($this->instance === null || !\is_callable([$this->instance, $onBusy])) {
            throw new InvalidOptionException(
                "$this->method: onBusy is '$onBusy', which is no public method of the object");
        }
        return $this->instance->{$onBusy}(...$this->positional);
    }
}
