<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests;

use PHPUnit\Framework\TestCase;
use Redlock\Exception\InvalidOptionException;
use Redlock\Hyperf\DocblockScan;

final class DocblockScanTest extends TestCase
{
    private const OLD = <<<'PHP'
        <?php
        namespace App\Service;
        use RedlockHyperf\Annotation\RedLockAnnotation;
        class Orders
        {
            const NAME = self::class;
            /**
             * Pays.
             * @RedLockAnnotation(
             *     resource="orders",
             *     poolName={"default", "b"}
             * )
             */
            public function pay(int $id) { return new class { public function other() {} }; }

            /** mentions RedLockAnnotation only */
            public function free() {}

            #[RedLockAnnotation(resource: 'new')]
            public function moved() {}
        }
        PHP;

    public function testItFindsTheMethodAndWritesTheAttribute(): void
    {
        $this->assertSame([['App\Service\Orders::pay', 'RedLockAnnotation',
            "resource: 'orders', poolName: ['default', 'b']"]], DocblockScan::find(self::OLD));
        $this->assertSame([], DocblockScan::find('<?php class A { public function b() {} }'));
    }

    /** @dataProvider spellings */
    public function testEverySpellingIsFound(string $code, string $name, string $method = 'App\A::go'): void
    {
        $this->assertSame([[$method, $name]],
            \array_map(static fn (array $found): array => [$found[0], $found[1]], DocblockScan::find("<?php $code")));
    }

    /** @return array<string, list<string>> */
    public static function spellings(): array
    {
        $method = static fn (string $docblock): string => "class A { /** $docblock */ public function go() {} }";
        $class = 'RedlockHyperf\Annotation\RedLockAnnotation';
        $imported = "namespace App; use $class;";
        $short = 'RedLockAnnotation';
        return [
            'an @ in a value' => [$imported . $method('@RedLockAnnotation(resource="mail:me@example.com")'), $short],
            'a ) in a value' => [$imported . $method('@RedLockAnnotation(resource="a)b")'), $short],
            'no arguments' => [$imported . $method('@RedLockAnnotation'), $short],
            'text right behind it' => [$imported . $method('@RedLockAnnotation: it is locked'), $short],
            'another tag before it' => [$imported . $method("@param int \$id\n * @RedLockAnnotation()"), $short],
            'within a line' => [$imported . $method('Pays, see @RedLockAnnotation(resource="x")'), $short],
            'an alias' => ["namespace App; use $class as Locked;" . $method('@Locked(resource="x")'), 'Locked'],
            'another case' => ["namespace App; use redlockhyperf\annotation\redlockannotation;"
                . $method('@REDLOCKANNOTATION()'), 'REDLOCKANNOTATION'],
            'an imported namespace' => ['namespace App; use RedlockHyperf\Annotation;'
                . $method('@Annotation\RedLockAnnotation(resource="x")'), 'Annotation\RedLockAnnotation'],
            'an alias of the namespace' => ['namespace App; use RedlockHyperf as R;'
                . $method('@R\Annotation\RedLockAnnotation()'), 'R\Annotation\RedLockAnnotation'],
            'a group' => ['namespace App; use RedlockHyperf\{RedLock, Annotation\RedLockAnnotation as L};'
                . $method('@L(resource="x")'), 'L'],
            'a list' => ["namespace App; use Foo\Bar, $class as L, Foo\Baz;" . $method('@L()'), 'L'],
            'the whole name' => ['namespace App;' . $method("@\\$class()"), "\\$class"],
            'without its first backslash' => ['namespace App;' . $method("@$class()"), $class],
            'not imported' => ['namespace App;' . $method('@RedLockAnnotation()'), $short],
            'no namespace' => [$method('@RedLockAnnotation()'), $short, 'A::go'],
            'a namespace in braces' => ["namespace B { use Foo\L; } namespace App { use $class as L; "
                . $method('@L()') . '}', 'L'],
            'imported behind a class' => ["namespace App; class B { use T; } use $class as L;" . $method('@L()'), 'L'],
            'an attribute with a block' => [$imported
                . 'class A { /** @RedLockAnnotation() */ #[Other([1], fn () => match (1) { 1 => [1] })] '
                . 'function go() {} }', $short],
            'behind an attribute' => [$imported
                . 'class A { #[Other] /** @RedLockAnnotation() */ final protected static function &go() {} }', $short],
            'behind an anonymous class' => [$imported . 'class A { function b() { return new class { }; } '
                . '/** @RedLockAnnotation() */ function go() {} }', $short],
            "the attribute's name" => ['namespace App; use Redlock\Hyperf\Annotation\WithLock;'
                . $method('@WithLock(resource="x")'), 'WithLock'],
            'in a trait' => [$imported . 'trait A { /** @RedLockAnnotation() */ function go() {} }', $short],
        ];
    }

    /** @dataProvider others */
    public function testWhatIsAnotherThingIsLeftAlone(string $code): void
    {
        $this->assertSame([], DocblockScan::find("<?php namespace App; $code"));
    }

    /** @return array<string, list<string>> */
    public static function others(): array
    {
        $method = static fn (string $docblock): string => "class A { /** $docblock */ public function go() {} }";
        $imported = 'use RedlockHyperf\Annotation\RedLockAnnotation;';
        return [
            'a class of that name of the program' => ['use Mine\RedLockAnnotation;' . $method('@RedLockAnnotation()')],
            'another class' => [$imported . $method('@Locked() @param string $x')],
            'an address' => [$imported . $method('mail me@RedLockAnnotation or @@RedLockAnnotation')],
            'a plain comment' => [$imported . 'class A { // @RedLockAnnotation
                public function go() {} }'],
            'above a property' => [$imported . 'class A { /** @RedLockAnnotation */ public $x; function go() {} }'],
            'a docblock that another replaces' => [$imported
                . 'class A { /** @RedLockAnnotation */ /** new */ public function go() {} }'],
            'a text on the attribute' => ['use Redlock\Hyperf\Annotation\WithLock;' . $method('see @WithLock')],
            'an imported function' => ['use function RedlockHyperf\Annotation\RedLockAnnotation as L;'
                . $method('@L()')],
        ];
    }

    public function testTheBootStopsWithMethodAndAttribute(): void
    {
        $folder = \sys_get_temp_dir() . '/redlock-scan-' . \bin2hex(\random_bytes(6));
        \mkdir("$folder/a", recursive: true);
        \file_put_contents("$folder/a/Orders.php", self::OLD);
        try {
            DocblockScan::refuse([$folder, '/nowhere']);
            $this->fail('it was not refused');
        } catch (InvalidOptionException $e) {
            $this->assertStringContainsString('App\Service\Orders::pay', $e->getMessage());
            $this->assertStringContainsString("#[RedLockAnnotation(resource: 'orders'", $e->getMessage());
        } finally {
            \unlink("$folder/a/Orders.php");
            \rmdir("$folder/a");
            \rmdir($folder);
        }
    }
}
