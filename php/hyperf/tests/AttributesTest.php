<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests;

use Hyperf\Di\Annotation\AnnotationCollector;
use PHPUnit\Framework\TestCase;
use Redlock\Hyperf\Annotation\WithLock;
use Redlock\Hyperf\Attributes;
use Redlock\Hyperf\LockSpec;
use RedlockHyperf\Annotation\RedLockAnnotation;

require_once __DIR__ . '/hyperf.php';

/** Which locks a method gets from the attributes that are written above it and its class. */
final class AttributesTest extends TestCase
{
    /** @return list<string> */
    private static function resources(string $class, string $method): array
    {
        return \array_map(static fn (LockSpec $spec): string => $spec->resource,
            Attributes::of($class, new \ReflectionMethod($class, $method)));
    }

    public function testSeveralAttributesAreTakenInOrder(): void
    {
        Scanner::scan(Annotated::class);
        $new = Attributes::of(Annotated::class, new \ReflectionMethod(Annotated::class, 'new'));
        $this->assertEquals(
            [new LockSpec('first', ['ttl_ms' => 5000]), new LockSpec('second', ['wait_ms' => 0])], $new);
    }

    public function testTwoNamesOnOneMethodAreTwoLocks(): void
    {
        Scanner::scan(Annotated::class);
        $this->assertSame(['new', 'annotation'], self::resources(Annotated::class, 'mixed'));
    }

    public function testSubclassesLockAsTheAttributeThatTheyAreMadeOf(): void
    {
        Scanner::scan(OfSubclasses::class);
        $this->assertSame(['order'], self::resources(OfSubclasses::class, 'old'));
        $this->assertSame(['night'], self::resources(OfSubclasses::class, 'new'));
        $this->assertSame(['night'], self::resources(OfSubclasses::class, 'plain'));
        $known = \array_merge(...\array_values(\array_map(\array_keys(...),
            AnnotationCollector::$methods[OfSubclasses::class])));
        $this->assertEqualsCanonicalizing($known, [RedLockAnnotation::class, WithLock::class], 'what the aspect names');
    }

    public function testAClassCountsForPublicMethodsWithoutAnAttribute(): void
    {
        Scanner::scan(Annotated::class);
        $this->assertSame(['class'], self::resources(Annotated::class, 'plain'));
        $this->assertSame([], self::resources(Annotated::class, 'hidden'));
    }

    public function testEveryNameIsCheckedAtBoot(): void
    {
        Scanner::scan(Annotated::class);
        $expected = [];
        foreach (['mixed', 'new', 'plain'] as $method) {
            $expected[] = Annotated::class . "::$method";
        }
        $this->assertSame($expected, self::checkedAtBoot());
    }

    /** @return list<string> */
    private static function checkedAtBoot(): array
    {
        $names = \array_keys(Attributes::methods());
        \sort($names);
        return $names;
    }
}

#[\Attribute(\Attribute::TARGET_METHOD | \Attribute::TARGET_CLASS)]
final class Nightly extends WithLock
{
    public function __construct()
    {
        parent::__construct('night', waitMs: 0);
    }
}

#[Nightly]
class OfSubclasses
{
    #[OrderLock]
    public function old(): void
    {
    }

    #[Nightly]
    public function new(): void
    {
    }

    public function plain(): void
    {
    }
}
