<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

use Redlock\Exception\InvalidOptionException;

/**
 * "order:#{order.id}" with the arguments of a call: a name of a parameter, then keys, properties or getters. "this" is
 * the object that is called, with the properties that its own code sees.
 */
final class Template
{
    private const PLACEHOLDER = '/#\{\s*([A-Za-z_]\w*(?:\.\w+)*)\s*\}/';

    /** @param string $method as messages show it: Class::method */
    public function __construct(private readonly string $text, private readonly string $method)
    {
    }

    /** @return list<string> the parameters that the template names */
    public function parameters(): array
    {
        \preg_match_all(self::PLACEHOLDER, $this->text, $matches);
        return \array_values(
            \array_unique(\array_map(static fn (string $path): string => \explode('.', $path)[0], $matches[1])));
    }

    /** @param list<string> $parameters of the method */
    public function check(array $parameters): void
    {
        if ($this->text === '') {
            throw $this->wrong('the resource is empty');
        }
        if (\preg_match('/#\{/', \preg_replace(self::PLACEHOLDER, '', $this->text))) {
            throw $this->wrong('a placeholder is #{parameter} or #{parameter.key}');
        }
        foreach (\array_diff($this->parameters(), $parameters) as $unknown) {
            throw $this->wrong("the method has no parameter \$$unknown");
        }
    }

    /** @param array<string, mixed> $arguments by name */
    public function render(array $arguments): string
    {
        $this->check(\array_keys($arguments));
        return \preg_replace_callback(
            self::PLACEHOLDER,
            fn (array $match): string => $this->text($this->value($match[1], $arguments), $match[1]),
            $this->text,
        );
    }

    /** @param array<string, mixed> $arguments */
    private function value(string $path, array $arguments): mixed
    {
        $names = \explode('.', $path);
        $value = $arguments[\array_shift($names)];
        foreach ($names as $name) {
            $isThis = isset($arguments['this']) && $value === $arguments['this'];
            $value = ($isThis ? self::property($value, $name) : null) ?? $this->step($value, $name, $path);
        }
        return $value;
    }

    /** Private ones too, of its class or a parent. */
    private static function property(object $object, string $name): mixed
    {
        for ($class = new \ReflectionObject($object); $class !== false; $class = $class->getParentClass()) {
            if ($class->hasProperty($name)) {
                $property = $class->getProperty($name);
                return $property->isInitialized($object) ? $property->getValue($object) : null;
            }
        }
        return null;
    }

    private function step(mixed $value, string $name, string $path): mixed
    {
        if (\is_array($value) || $value instanceof \ArrayAccess) {
            return $value[$name] ?? null;
        }
        if (!\is_object($value)) {
            throw $this->wrong("#{{$path}} looks for $name in " . \get_debug_type($value));
        }
        if (isset($value->{$name})) {
            return $value->{$name};
        }
        $getter = 'get' . \ucfirst($name);
        return \is_callable([$value, $getter]) ? $value->{$getter}() : null;
    }

    /** A value that is no text would make all calls share one key. */
    private function text(mixed $value, string $path): string
    {
        if ($value instanceof \BackedEnum) {
            $value = $value->value;
        }
        $readable = \is_scalar($value) || $value instanceof \Stringable;
        if (!$readable || (string) $value === '') {
            throw $this->wrong("#{{$path}} is " . ($value === '' ? "''" : \get_debug_type($value))
                . ', not a text or number');
        }
        return (string) $value;
    }

    private function wrong(string $why): InvalidOptionException
    {
        return new InvalidOptionException("$this->method, resource '$this->text': $why");
    }
}
