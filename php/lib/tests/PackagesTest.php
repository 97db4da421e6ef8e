<?php

declare(strict_types=1);

namespace Redlock\Tests;

use PHPUnit\Framework\TestCase;
use Redlock\Client;
use Redlock\ClientInterface;
use Redlock\HoldInterface;
use Redlock\LockInterface;

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
        foreach (['lib', 'hyperf'] as $package) {
            $this->assertSame(['dev-main' => "$minor.x-dev"], self::composer($package)['extra']['branch-alias']);
        }
        $this->assertSame("~$minor.0", self::composer('lib')['require']['ext-redlock']);
        $this->assertSame('self.version', self::composer('hyperf')['require']['libredlock/redlock']);
    }

    public function testTheExtensionIsDescribedForPie(): void
    {
        $extension = self::composer('..');
        $this->assertSame('php-ext', $extension['type']);
        $this->assertSame('redlock', $extension['php-ext']['extension-name']);
        $this->assertFileExists(self::PHP . '/../' . $extension['php-ext']['build-path'] . '/config.m4');
    }

    public function testThePackageHasWhatAReaderLooksFor(): void
    {
        $this->assertFileEquals(self::PHP . '/../LICENSE', self::PHP . '/lib/LICENSE');
        $this->assertStringContainsString('# libredlock/redlock', \file_get_contents(self::PHP . '/lib/README.md'));
        foreach (self::composer('lib')['extra']['phpstan']['includes'] as $file) {
            $this->assertFileExists(self::PHP . "/lib/$file");
        }
        $this->assertFileExists(self::PHP . '/lib/stubs/redlock.stub.php');
    }

    /** phpstan takes a repeated question for answered, and a catch for dead unless \@throws names its exception. */
    public function testAnalysersKnowWhatChangesAndWhatIsThrown(): void
    {
        $changing = ['isHeld', 'isLost', 'remainingMs', 'tryAcquire', 'inFlight'];
        foreach ([Client::class, ClientInterface::class, HoldInterface::class, LockInterface::class] as $class) {
            foreach ((new \ReflectionClass($class))->getMethods() as $method) {
                $doc = (string) $method->getDocComment();
                $named = $method->class . '::' . $method->name;
                if (\str_contains($doc, '@throws')) {
                    $this->assertStringContainsString('@throws Exception\RedlockException', $doc, $named);
                }
                if (\in_array($method->name, $changing, true) && \interface_exists($method->class)) {
                    $this->assertStringContainsString('@phpstan-impure', $doc, $named);
                }
            }
        }
    }

    public function testNoClassIsLeftOver(): void
    {
        $files = [];
        foreach (['lib/src', 'hyperf/src', 'hyperf/compat', 'lib/stubs', 'lib/tests', 'hyperf/tests'] as $folder) {
            $tree = new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator(self::PHP . "/$folder"));
            foreach (new \RegexIterator($tree, '/\.php$/') as $file) {
                $files[$file->getPathname()] = \file_get_contents($file->getPathname());
            }
        }
        foreach (\preg_grep('#/(src|compat)/#', \array_keys($files)) as $path) {
            $name = \basename($path, '.php');
            $users = \preg_grep("/\\b$name\\b/", \array_diff_key($files, [$path => true]));
            $this->assertTrue($users !== [] || $name === 'extension', "nothing names the class of $path");
        }
    }

    /** One require and nothing else, as in a script that does not use Composer; one that it includes has its own. */
    public function testTheLibraryLoadsWithoutComposer(): void
    {
        $extension = \getenv('REDLOCK_PHP_EXTENSION');
        $command = [\PHP_BINARY, ...($extension === false ? [] : ['-d', "extension=$extension"]), '-r',
            'require $argv[1]; require $argv[1]; '
            . 'echo Redlock\Client::connect("redis://127.0.0.1:1", ttlMs: 500)->option("ttl_ms"); '
            . 'var_dump(class_exists("Redlock\Nothing"));', self::PHP . '/lib/autoload.php'];
        $process = \proc_open($command, [1 => ['pipe', 'w'], 2 => ['pipe', 'w']], $pipes);
        $output = \stream_get_contents($pipes[1]) . \stream_get_contents($pipes[2]);
        \proc_close($process);
        $this->assertSame("500bool(false)\n", $output);
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
        $path = static fn (string $folder): array => ['type' => 'path', 'url' => \realpath(self::PHP . "/$folder")];
        $hyperf = \array_filter(\array_keys(self::composer('hyperf')['require']),
            static fn (string $name): bool => \str_starts_with($name, 'hyperf/'));
        \file_put_contents("$folder/composer.json", \json_encode([
            'repositories' => [$path('lib'), $path('hyperf'),
                ['packagist.org' => false]],
            'require' => ['libredlock/redlock' => '@dev', 'libredlock/hyperf' => '@dev'],
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
