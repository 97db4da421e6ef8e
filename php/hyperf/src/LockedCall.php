<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

use Redlock\Exception\BusyException;
use Redlock\Exception\InvalidOptionException;
use Redlock\Exception\NoQuorumException;
use Redlock\Exception\RedlockThrowable;
use Redlock\Hold;

/** @internal A method call under the locks of its attributes: taken in order, released in reverse. */
final class LockedCall
{
    /**
     * @param string $method as messages show it: Class::method
     * @param array<string, mixed> $arguments by name
     * @param list<mixed> $positional the same in order, as onBusy and onNoQuorum are called
     * @param ?object $instance has the methods that they name
     * @param \Closure(array<string, int|Hold|null>): mixed $body with the arguments that the locks give
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

    /**
     * @param list<LockSpec> $specs
     * @param array<string, int|Hold|null> $given by the locks that are held already, by parameter
     */
    public function run(array $specs, array $given = []): mixed
    {
        $spec = \array_shift($specs);
        if ($spec === null) {
            return ($this->body)($given);
        }
        $values = ($this->instance === null ? [] : ['this' => $this->instance]) + $this->arguments;
        $rendered = static fn (Template $template): string => $template->render($values);
        $resources = \array_values(\array_unique(\array_map($rendered, $spec->templates($this->method))));
        $held = HeldHere::find($spec->place(), $resources, $this->method);
        if ($held !== null) {
            $this->refuseWhatOthersHave($spec, $resources, $held);
            return $held->again(fn (): mixed => HeldHere::within($spec->place(), $resources, $held,
                fn (): mixed => $this->run($specs, self::with($given, $spec, $held))));
        }
        return $this->under($spec, $resources, $specs, $given);
    }

    /**
     * A method that wants the lock for itself, or together with fewer, must not run under one that others have, too.
     *
     * @param list<string> $resources
     */
    private function refuseWhatOthersHave(LockSpec $spec, array $resources, Hold $held): void
    {
        $permits = $held->permits();
        if (!$held->isShared() && $permits === 1) {
            return;
        }
        $lock = $this->locks->lockFor($spec, $resources);
        $words = "$this->method: \"$resources[0]\" is held further out with ";
        if ($held->isShared() && $lock->option('shared') !== 'true') {
            throw new InvalidOptionException($words . 'shared: true, '
                . 'which does not become exclusive; take it without shared there, or after that method has ended');
        }
        if ($permits > 1 && (int) $lock->option('permits') !== $permits) {
            throw new InvalidOptionException($words . "permits: $permits; take it with as many here, or after that "
                . 'method has ended');
        }
    }

    /**
     * @param array<string, int|Hold|null> $given
     * @return array<string, int|Hold|null>
     */
    private static function with(array $given, LockSpec $spec, Hold $hold): array
    {
        return ($spec->fence === null ? [] : [$spec->fence => $hold->fence()])
            + ($spec->hold === null ? [] : [$spec->hold => $hold]) + $given;
    }

    /**
     * @param list<string> $resources
     * @param list<LockSpec> $rest
     * @param array<string, int|Hold|null> $given
     */
    private function under(LockSpec $spec, array $resources, array $rest, array $given): mixed
    {
        $entered = false;
        try {
            $lock = $this->locks->lockFor($spec, $resources);
            $body = function (Hold $hold) use ($spec, $resources, $rest, $given, &$entered): mixed {
                $entered = true;
                return $this->holding($spec, $resources, $hold, $rest, self::with($given, $spec, $hold));
            };
            if ($spec->repeat === null) {
                return $lock->run($body);
            }
            $mayRepeat = static function () use (&$entered): bool {
                return !$entered;
            };
            return ($spec->repeat)(static fn (): mixed => $lock->run($body), $mayRepeat);
        } catch (RedlockThrowable $refused) {
            if ($entered) {
                throw $refused; /* the body's own, or the loss of the lock */
            }
            $instead = $this->instead($spec, $refused);
            if ($instead === null) {
                throw $spec->translate === null ? $refused : ($spec->translate)($refused);
            }
        }
        return $instead(...$this->positional, ...$this->told($instead, $refused));
    }

    /** @return array<string, RedlockThrowable> the refusal, if a parameter behind those of the method has its type */
    private function told(callable $instead, RedlockThrowable $refused): array
    {
        $parameters = (new \ReflectionFunction($instead(...)))->getParameters();
        foreach (\array_slice($parameters, \count($this->positional)) as $parameter) {
            if (self::isTold($parameter, $refused::class)) {
                return [$parameter->getName() => $refused];
            }
        }
        return [];
    }

    /** @param class-string $refusal */
    public static function isTold(\ReflectionParameter $parameter, string $refusal): bool
    {
        $type = $parameter->getType();
        return $type instanceof \ReflectionNamedType && \is_a($refusal, $type->getName(), true)
            && \is_a($type->getName(), RedlockThrowable::class, true);
    }

    /**
     * @param list<string> $resources
     * @param list<LockSpec> $rest
     * @param array<string, int|Hold|null> $given
     */
    private function holding(LockSpec $spec, array $resources, Hold $hold, array $rest, array $given): mixed
    {
        $run = fn (): mixed => $this->run($rest, $given);
        HeldHere::add($spec->place(), $resources, $hold);
        try {
            return $spec->onLost === null ? $run() : CancelOnLoss::around($hold, $run);
        } finally {
            HeldHere::remove($spec->place(), $resources);
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
        $of = $this->instance ?? \explode('::', $this->method)[0]; /* static methods have no object */
        if ($method !== null && !\is_callable([$of, $method])) {
            throw new InvalidOptionException(
                "$this->method: $option is '$method', which is no public method of the object");
        }
        return $method === null ? null : [$of, $method];
    }
}
