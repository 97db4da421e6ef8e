<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests;

use Hyperf\Contract\ConfigInterface;
use PHPUnit\Framework\TestCase;
use Redlock\Exception\InvalidOptionException;
use Redlock\Hyperf\Listener\BootListener;
use Redlock\Hyperf\Locks;
use Redlock\Hyperf\Unread;

require_once __DIR__ . '/hyperf.php';

final class UnreadTest extends TestCase
{
    private const USE = 'use Redlock\Hyperf\Annotation\WithLock;';

    /** @dataProvider places */
    public function testAnAttributeWhereHyperfDoesNotLookIsFound(string $code, bool $isRead = false): void
    {
        $this->assertSame($isRead ? [] : [2], Unread::lines("<?php\n$code"));
    }

    /** @return array<string, array{0: string, 1?: bool}> */
    public static function places(): array
    {
        $app = 'namespace App; ' . self::USE;
        $method = "#[WithLock('x')] public function go() {}";
        return [
            'a method' => ["$app class A { $method }", true],
            'a class, an interface and its method' => ["$app #[WithLock('x')] interface A { $method }", true],
            'an attribute of another library' => ["namespace App; class A {} class B { $method }", true],
            'an anonymous class' => ["$app class A { public function make() { return new class { $method }; } }"],
            'an attribute of old' => ['namespace App; use RedlockHyperf\Annotation\RedLockAnnotation; class A { } '
                . "class B { #[RedLockAnnotation('x')] public function go() {} }"],
            'what is no PHP' => ["$app class A { function ", true],
            'the second class' => ["$app class A { } class B { $method }"],
            'no namespace' => [self::USE . " class A { $method }"],
            'a closure' => ["$app class A { public function make() { return #[WithLock('x')] fn () => 1; } }"],
            'a function by its full name' => ["namespace App; #[\\Redlock\\Hyperf\\Annotation\\WithLock('x')] "
                . 'function go() {}'],
        ];
    }

    public function testItStopsTheBoot(): void
    {
        $config = $this->createStub(ConfigInterface::class);
        $config->method('get')->willReturn([__DIR__ . '/Unread']);
        $this->expectException(InvalidOptionException::class);
        $this->expectExceptionMessage(__DIR__ . '/Unread/Anonymous.php:16: the attribute locks nothing: Hyperf reads');
        (new BootListener($config, new Locks([], [])))->process(new \stdClass());
    }
}
