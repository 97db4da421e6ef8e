<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

use Redlock\Exception\InvalidOptionException;

/**
 * @internal Which methods an attribute locks. Hyperf rewrites a method where its code stands, and asks for the
 * attributes of that class or trait: what a class inherits, or has of a trait, does not have the class's.
 */
final class Reach
{
    /**
     * @param \ReflectionMethod $method one that was found with an attribute, maybe inherited with it
     * @return \ReflectionMethod the one that is rewritten
     */
    public static function ofMethod(\ReflectionMethod $method): \ReflectionMethod
    {
        $code = self::code($method);
        $name = "$code->class::$code->name";
        if ($code->isAbstract()) {
            throw new InvalidOptionException("$name is abstract: an attribute there locks nothing, as it is not "
                . 'inherited; write it above the methods that implement it');
        }
        if ($code->isConstructor() && Attributes::onClass($code->class) !== []) {
            throw new InvalidOptionException("$name would not be locked: Hyperf leaves out the constructor of a class "
                . 'that has an attribute, too; remove one of both');
        }
        if (Attributes::of($code->class, $code) === []) {
            throw new InvalidOptionException("$name would run without its lock: Hyperf does not scan $code->class "
                . '(annotations.scan.paths)');
        }
        return $code;
    }

    /** @return non-empty-list<\ReflectionMethod> what the attribute of a class locks, besides methods with their own */
    public static function ofClass(\ReflectionClass $class): array
    {
        $reached = [];
        foreach ($class->getMethods(\ReflectionMethod::IS_PUBLIC) as $method) {
            if ($method->isStatic() || $method->isConstructor() || $method->isAbstract() || $method->isInternal()) {
                continue; /* PHP's own methods are not expected to lock */
            }
            $code = self::code($method);
            if (Attributes::of($code->class, $code) === []) {
                throw new InvalidOptionException("$class->name::$method->name would run without the lock of "
                    . "$class->name: its code is in $code->class; declare it again in $class->name, or write the "
                    . 'attribute above methods, and not above the class');
            }
            $code->class === $class->name && $reached[] = $code;
        }
        return $reached ?: throw new InvalidOptionException("the attribute of $class->name locks nothing: there is no "
            . 'code of a public method that is not static; write it above the methods of a class');
    }

    /**
     * @param list<string> $classes
     * @return list<string> about their methods without a lock that override one with it
     */
    public static function overrides(array $classes): array
    {
        $words = [];
        foreach (\array_filter($classes, \class_exists(...)) as $name) {
            $class = new \ReflectionClass($name);
            $from = \array_filter([$class->getParentClass(), ...\array_values($class->getTraits())]);
            foreach ($class->getMethods() as $method) {
                if ($method->class === $name && self::specs($method) === [] && self::isLocked($method->name, $from)) {
                    $words[] = "$name::$method->name overrides a method that has a lock, and has none: attributes are "
                        . 'not inherited; write it there, too';
                }
            }
        }
        return $words;
    }

    /** @param list<\ReflectionClass> $classes */
    private static function isLocked(string $method, array $classes): bool
    {
        foreach ($classes as $class) {
            if ($class->hasMethod($method) && self::specs($class->getMethod($method)) !== []) {
                return true;
            }
        }
        return false;
    }

    /** @return list<LockSpec> */
    private static function specs(\ReflectionMethod $method): array
    {
        $code = self::code($method);
        return Attributes::of($code->class, $code);
    }

    /** The method of the class or trait in which the code stands. */
    private static function code(\ReflectionMethod $method): \ReflectionMethod
    {
        $place = static fn (\ReflectionMethod $one): array => [$one->getFileName(), $one->getStartLine(),
            $one->getEndLine()];
        foreach ($method->getDeclaringClass()->getTraits() as $trait) {
            foreach ($trait->getMethods() as $other) {
                if ($place($other) === $place($method)) {
                    return self::code($other);
                }
            }
        }
        return $method;
    }
}
