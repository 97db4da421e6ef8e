<?php

/** Loads the library where Composer is not used: require '.../php/lib/autoload.php'; */

declare(strict_types=1);

\spl_autoload_register(static function (string $class): void {
    $file = __DIR__ . '/src/' . \strtr(\substr($class, \strlen('Redlock\\')), '\\', '/') . '.php';
    if (\str_starts_with($class, 'Redlock\\') && \is_file($file)) {
        require $file;
    }
});
require_once __DIR__ . '/src/extension.php';
