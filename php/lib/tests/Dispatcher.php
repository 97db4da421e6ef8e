<?php

declare(strict_types=1);

namespace Redlock\Tests;

use Psr\EventDispatcher\EventDispatcherInterface;

/** Keeps what it is given, and then calls the listener. */
final class Dispatcher implements EventDispatcherInterface
{
    /** @var list<object> */
    public array $events = [];

    public function __construct(private readonly ?\Closure $listener = null)
    {
    }

    public function dispatch(object $event): object
    {
        $this->events[] = $event;
        $this->listener === null || ($this->listener)($event);
        return $event;
    }

    /**
     * @template T of object
     * @param class-string<T> $class
     * @return list<T>
     */
    public function of(string $class): array
    {
        return \array_values(\array_filter($this->events, static fn (object $event): bool => $event instanceof $class));
    }

    /** @return list<string> the classes of what happened to locks */
    public function names(): array
    {
        return \array_map(static fn (object $event): string => \substr(\strrchr($event::class, '\\'), 1),
            $this->of(\Redlock\Event\LockEvent::class));
    }
}
