<?php

declare(strict_types=1);

use function Hyperf\Support\env;

return [
    /* Each entry is a cluster; attributes and calls that name none use "default". */
    'default' => [
        /* URLs, or names of pools in config/autoload/redis.php: host, port, auth, db and key prefix are read there. */
        'nodes' => \array_filter(\explode(',', env('REDLOCK_NODES', ''))),
        /* Any option of docs/options.md. */
        'ttl_ms' => 10000,
        'wait_ms' => 3000, /* for a lock that others hold */
        'outage_wait_ms' => 1000, /* for nodes, when too few of them answer */
    ],
];
