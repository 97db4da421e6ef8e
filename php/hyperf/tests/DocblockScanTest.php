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
             * @RedLockAnnotation(resource="orders", poolName={"default", "b"})
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
        $this->assertSame([['App\Service\Orders::pay', "resource: 'orders', poolName: ['default', 'b']"]],
            DocblockScan::find(self::OLD));
        $this->assertSame([], DocblockScan::find('<?php class A { public function b() {} }'));
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
