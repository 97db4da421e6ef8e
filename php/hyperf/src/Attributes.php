<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

use Hyperf\Di\Annotation\AnnotationCollector;
use Hyperf\Di\Annotation\MultipleAnnotation;
use Redlock\Exception\InvalidOptionException;
use Redlock\Hyperf\Annotation\WithLock;
use RedlockHyperf\Annotation\RedLockAnnotation;

/** @internal Which locks a method is called under. */
final class Attributes
{
    private const ON_CLASSES = [WithLock::class];
    private const ON_METHODS = [...self::ON_CLASSES, RedLockAnnotation::class];

    /** @return list<LockSpec> */
    public static function of(string $class, \ReflectionMethod $method): array
    {
        $own = AnnotationCollector::getClassMethodAnnotation($class, $method->getName()) ?? [];
        $specs = self::specs(self::ON_METHODS, static fn (string $name): mixed => $own[$name] ?? null);
        if ($specs !== [] || !$method->isPublic() || $method->isStatic() || $method->isConstructor()) {
            return $specs;
        }
        return self::onClass($class);
    }

    /** @return list<LockSpec> */
    public static function onClass(string $class): array
    {
        return self::specs(self::ON_CLASSES,
            static fn (string $name): mixed => AnnotationCollector::getClassAnnotation($class, $name));
    }

    /**
     * @return array<string, \ReflectionMethod> every method that runs under locks
     * @throws InvalidOptionException an attribute locks nothing, or less than it seems to
     */
    public static function methods(): array
    {
        $methods = [];
        foreach (self::ON_METHODS as $name) {
            foreach (AnnotationCollector::getMethodsByAnnotation($name) as $found) {
                $methods[] = Reach::ofMethod(new \ReflectionMethod($found['class'], $found['method']));
            }
        }
        foreach (self::ON_CLASSES as $name) {
            foreach (\array_keys(AnnotationCollector::getClassesByAnnotation($name)) as $class) {
                \array_push($methods, ...Reach::ofClass(new \ReflectionClass($class)));
            }
        }
        $names = \array_map(static fn (\ReflectionMethod $one): string => "$one->class::$one->name", $methods);
        return \array_combine($names, $methods);
    }

    /** @return list<string> the classes that have an attribute, or a method with one, maybe inherited */
    public static function classes(): array
    {
        $classes = [];
        foreach (self::ON_METHODS as $name) {
            \array_push($classes, ...\array_keys(AnnotationCollector::getClassesByAnnotation($name)),
                ...\array_column(AnnotationCollector::getMethodsByAnnotation($name), 'class'));
        }
        return \array_values(\array_unique($classes));
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
