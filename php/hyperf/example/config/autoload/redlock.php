<?php

declare(strict_types=1);

return [
    'default' => [
        'nodes' => \explode(',', (string) \getenv('REDLOCK_NODES')),
        'ttl_ms' => 5000,
        'wait_ms' => 20000,
        'client_name' => 'hyperf',
    ],
];
