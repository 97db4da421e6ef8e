<?php

declare(strict_types=1);

namespace Redlock\Tests;

use PHPUnit\Framework\TestCase;

/** The Composer packages, and that they agree on the version of the header. */
final class PackagesTest extends TestCase
{
    private const PHP = __DIR__ . '/../..';

    private static function composer(string $path): array
    {
        return \json_decode(\file_get_contents(self::PHP . "/$path/composer.json"), true, flags: \JSON_THROW_ON_ERROR);
    }

    public function testTheVersionsFollowTheHeader(): void
    {
        $minor = \implode('.', \array_slice(\explode('.', \redlock_version()), 0, 2));
        $this->assertSame($minor, \Redlock\EXTENSION_MINOR);
        $this->assertSame("~$minor.0", self::composer('lib')['require']['ext-redlock']);
        $this->assertSame("~$minor.0", self::composer('hyperf')['require']['libredlock/redlock']);
        $this->assertSame("~$minor.0", self::composer('hyperf/example')['require']['libredlock/hyperf']);
    }

    public function testTheExtensionIsDescribedForPie(): void
    {
        $extension = self::composer('..');
        $this->assertSame('php-ext', $extension['type']);
        $this->assertSame('redlock', $extension['php-ext']['extension-name']);
        $this->assertFileExists(self::PHP . '/../' . $extension['php-ext']['build-path'] . '/config.m4');
    }

    /** Both packages from path repositories, without a network; Hyperf itself is said to be there. */
    public function testTheyInstallOffline(): void
    {
        $composer = \trim((string) \shell_exec('command -v composer'));
        if ($composer === '') {
            $this->markTestSkipped('composer is not installed');
        }
        $folder = \sys_get_temp_dir() . '/redlock-composer-' . \bin2hex(\random_bytes(6));
        \mkdir($folder);
        $version = \redlock_version();
        $path = static fn (string $name, string $folder): array => ['type' => 'path',
            'url' => \realpath(self::PHP . "/$folder"),
            'options' => ['versions' => [$name => $version]]];
        $hyperf = \array_filter(\array_keys(self::composer('hyperf')['require']),
            static fn (string $name): bool => \str_starts_with($name, 'hyperf/'));
        \file_put_contents("$folder/composer.json", \json_encode([
            'repositories' => [$path('libredlock/redlock', 'lib'), $path('libredlock/hyperf', 'hyperf'),
                ['packagist.org' => false]],
            'require' => ['libredlock/hyperf' => '*'],
            'replace' => \array_fill_keys($hyperf, '3.1.71'),
        ]));
        $extension = \getenv('REDLOCK_PHP_EXTENSION');
        $php = [\PHP_BINARY, ...($extension === false ? [] : ['-d', "extension=$extension"])];
        $run = static function (array $command) use ($folder): array {
            $environment = ['COMPOSER_DISABLE_NETWORK' => '1', 'COMPOSER_ALLOW_SUPERUSER' => '1',
                'COMPOSER_HOME' => $folder] + \getenv();
            $process = \proc_open($command, [1 => ['file', "$folder/out", 'w'], 2 => ['file', "$folder/out", 'a']],
                $pipes, $folder, $environment);
            return [\proc_close($process), \file_get_contents("$folder/out")];
        };
        try {
            [$status, $output] = $run([...$php, $composer, 'install', '--no-interaction', '--no-progress']);
            $this->assertSame(0, $status, $output);
            $script = 'require "vendor/autoload.php";'
                . 'echo Redlock\Client::connect("redis://127.0.0.1:1", ttlMs: 500)->option("ttl_ms"),'
                . '(new Redlock\Hyperf\Template("#{a}", "m"))->render(["a" => 1]),'
                . 'get_parent_class("RedlockHyperf\Exception\RedLockException");';
            [$status, $output] = $run([...$php, '-r', $script]);
            $this->assertSame([0, '5001RuntimeException'], [$status, $output]);
        } finally {
            \shell_exec('rm -rf ' . \escapeshellarg($folder));
        }
    }
}
