<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests;

use Hyperf\Di\Annotation\AnnotationCollector;

/** Collects attributes as Hyperf's scanner does: of methods that a class inherits, too. */
final class Scanner
{
    /** @param class-string ...$classes no others are known then */
    public static function scan(string ...$classes): void
    {
        [AnnotationCollector::$classes, AnnotationCollector::$methods] = [[], []];
        foreach ($classes as $class) {
            $reflection = new \ReflectionClass($class);
            foreach ($reflection->getAttributes() as $attribute) {
                $attribute->newInstance()->collectClass($class);
            }
            foreach ($reflection->getMethods() as $method) {
                foreach ($method->getAttributes() as $attribute) {
                    $attribute->newInstance()->collectMethod($class, $method->getName());
                }
            }
        }
    }
}
