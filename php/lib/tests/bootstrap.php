<?php

declare(strict_types=1);

/* Packages of the distribution stand in /usr/share/php; everything else is here. */
\spl_autoload_register(static function (string $class): void {
    $php = \dirname(__DIR__, 2);
    $folders = ['Redlock\\Hyperf\\Tests\\' => "$php/hyperf/tests", 'Redlock\\Hyperf\\' => "$php/hyperf/src",
        'RedlockHyperf\\' => "$php/hyperf/compat",
        'Redlock\\Tests\\' => __DIR__, 'Redlock\\' => "$php/lib/src"];
    foreach ($folders as $prefix => $folder) {
        if (\str_starts_with($class, $prefix)) {
            $file = $folder . '/' . \strtr(\substr($class, \strlen($prefix)), '\\', '/') . '.php';
            \is_file($file) && require $file;
            return;
        }
    }
});
require \dirname(__DIR__) . '/src/extension.php';
/* What is not in the distribution: Revolt, for example. */
\is_file((string) \getenv('REDLOCK_PHP_AUTOLOAD')) && require \getenv('REDLOCK_PHP_AUTOLOAD');
$packages = ['Psr/Log/autoload.php', 'Psr/EventDispatcher/autoload.php', 'Symfony/Component/Lock/autoload.php'];
foreach ($packages as $package) {
    if (\is_file("/usr/share/php/$package")) {
        require_once "/usr/share/php/$package";
    }
}
