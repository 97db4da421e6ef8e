<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests;

use Hyperf\Event\Contract\ListenerInterface;
use Psr\Container\ContainerInterface;
use Redlock\Hyperf\ConfigProvider;

/**
 * Makes each object once, by its factory or with what its constructor's types name, and as Hyperf's refuses cycles.
 * The component's listeners are called as by Hyperf's dispatcher: by priority, else in any order.
 */
final class Container implements ContainerInterface
{
    /** @var array<string, callable(ContainerInterface): object> */
    public array $factories = [];
    /** @var list<string> what is being made */
    private array $making = [];

    /** @param array<string, object> $made */
    public function __construct(private array $made = [])
    {
    }

    public function get($id)
    {
        return $this->made[$id] ??= $this->make($id);
    }

    public function has($id): bool
    {
        return isset($this->made[$id]) || isset($this->factories[$id]);
    }

    public function make(string $id): object
    {
        if (\in_array($id, $this->making, true)) {
            throw new \LogicException('a cycle: ' . \implode(' -> ', [...$this->making, $id]));
        }
        $this->making[] = $id;
        try {
            return isset($this->factories[$id]) ? ($this->factories[$id])($this) : new $id(...$this->arguments($id));
        } finally {
            \array_pop($this->making);
        }
    }

    /** @return list<array{int, ListenerInterface}> with their priorities */
    public function listeners(): array
    {
        $made = [];
        foreach ((new ConfigProvider())()['listeners'] as $class => $priority) {
            $made[] = \is_int($class) ? [0, $this->get($priority)] : [$priority, $this->get($class)];
        }
        return $made;
    }

    public function dispatch(object $event): void
    {
        $listeners = \array_filter($this->listeners(), static fn (array $one): bool =>
            \in_array($event::class, $one[1]->listen(), true));
        \usort($listeners, static fn (array $one, array $other): int => $other[0] <=> $one[0]);
        foreach ($listeners as [, $listener]) {
            $listener->process($event);
        }
    }

    /** @return list<object> */
    private function arguments(string $class): array
    {
        $parameters = (new \ReflectionMethod($class, '__construct'))->getParameters();
        $needed = \array_filter($parameters, static fn (\ReflectionParameter $one): bool => !$one->isOptional());
        return \array_map(function (\ReflectionParameter $one): object {
            $type = $one->getType()->getName();
            return $type === ContainerInterface::class ? $this : $this->get($type);
        }, $needed);
    }
}
