<?php

declare(strict_types=1);

use Hyperf\Contract\StdoutLoggerInterface;
use Psr\Log\LogLevel;

return [
    'app_name' => 'redlock-example',
    'scan_cacheable' => false,
    StdoutLoggerInterface::class => ['log_level' => [LogLevel::ERROR, LogLevel::WARNING, LogLevel::NOTICE]],
];
