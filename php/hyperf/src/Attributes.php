<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

use Hyperf\Di\Annotation\AnnotationCollector;
use Hyperf\Di\Annotation\MultipleAnnotation;
use Redlock\Hyperf\Annotation\RedLock;
use RedlockHyperf\Annotation\RedLockAnnotation;

/** @internal Which locks a method is called under. */
final class Attributes
{
    /** @return list<LockSpec> */
    public static function of(string $class, \ReflectionMethod $method): array
    {
        $own = AnnotationCollector::getClassMethodAnnotation($class, $method->getName()) ?? [];
        $specs = \array_merge(self::specs($own[RedLock::class] ?? null),
            self::specs($own[RedLockAnnotation::class] ?? null));
        if ($specs !== [] || !$method->isPublic() || $method->isStatic() || $method->isConstructor()) {
            return $specs;
        }
        return self::specs(AnnotationCollector::getClassAnnotation($class, RedLock::class));
    }

    /** @return list<array{string, \ReflectionMethod}> every method that runs under locks, by class */
    public static function methods(): array
    {
        $methods = [];
        foreach ([RedLock::class, RedLockAnnotation::class] as $annotation) {
            foreach (AnnotationCollector::getMethodsByAnnotation($annotation) as $found) {
                $methods[] = [$found['class'], new \ReflectionMethod($found['class'], $found['method'])];
            }
        }
        foreach (\array_keys(AnnotationCollector::getClassesByAnnotation(RedLock::class)) as $class) {
            foreach ((new \ReflectionClass($class))->getMethods(\ReflectionMethod::IS_PUBLIC) as $method) {
                $methods[] = [$class, $method];
            }
        }
        return $methods;
    }

    /** @return list<LockSpec> */
    private static function specs(mixed $found): array
    {
        $attributes = $found instanceof MultipleAnnotation ? $found->toAnnotations() : \array_filter([$found]);
        return \array_map(static fn ($attribute): LockSpec => $attribute->spec(), $attributes);
    }
}
