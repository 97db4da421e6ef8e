#!/usr/bin/env php
<?php

declare(strict_types=1);

\ini_set('display_errors', 'on');
\error_reporting(\E_ALL);

\defined('BASE_PATH') || \define('BASE_PATH', \dirname(__DIR__));
\defined('SWOOLE_HOOK_FLAGS') || \define('SWOOLE_HOOK_FLAGS', \SWOOLE_HOOK_ALL);

require BASE_PATH . '/vendor/autoload.php';

(static function (): void {
    Hyperf\Di\ClassLoader::init();
    $container = require BASE_PATH . '/config/container.php';
    $container->get(Hyperf\Contract\ApplicationInterface::class)->run();
})();
