<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

use Hyperf\Di\Annotation\AnnotationCollector;
use Hyperf\Di\Annotation\MultipleAnnotation;
use Redlock\Hyperf\Annotation\RedLock;
use Redlock\Hyperf\Annotation\WithLock;
use RedlockHyperf\Annotation\RedLockAnnotation;

/** @internal Which locks a method is called under. */
final class Attributes
{
    private const ON_CLASSES = [WithLock::class, RedLock::class];
    private const ON_METHODS = [...self::ON_CLASSES, RedLockAnnotation::class];

    /** @return list<LockSpec> */
    public static function of(string $class, \ReflectionMethod $method): array
    {
        $own = AnnotationCollector::getClassMethodAnnotation($class, $method->getName()) ?? [];
        $specs = self::specs(self::ON_METHODS, static fn (string $name): mixed => $own[$name] ?? null);
        if ($specs !== [] || !$method->isPublic() || $method->isStatic() || $method->isConstructor()) {
            return $specs;
        }
        return self::specs(self::ON_CLASSES,
            static fn (string $name): mixed => AnnotationCollector::getClassAnnotation($class, $name));
    }

    /** @return list<array{string, \ReflectionMethod}> every method that runs under locks, by class */
    public static function methods(): array
    {
        $methods = [];
        foreach (self::ON_METHODS as $name) {
            foreach (AnnotationCollector::getMethodsByAnnotation($name) as $found) {
                $methods[] = [$found['class'], new \ReflectionMethod($found['class'], $found['method'])];
            }
        }
        foreach (self::ON_CLASSES as $name) {
            foreach (\array_keys(AnnotationCollector::getClassesByAnnotation($name)) as $class) {
                foreach ((new \ReflectionClass($class))->getMethods(\ReflectionMethod::IS_PUBLIC) as $method) {
                    $methods[] = [$class, $method];
                }
            }
        }
        return $methods;
    }

    /**
     * @param list<class-string> $names of attributes
     * @param \Closure(class-string): mixed $find what stands under that name: one, several, or null
     * @return list<LockSpec>
     */
    private static function specs(array $names, \Closure $find): array
    {
        $specs = [];
        foreach (\array_map($find, $names) as $found) {
            $attributes = $found instanceof MultipleAnnotation ? $found->toAnnotations() : \array_filter([$found]);
            foreach ($attributes as $attribute) {
                $specs[] = $attribute->spec();
            }
        }
        return $specs;
    }
}
