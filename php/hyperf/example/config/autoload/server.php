<?php

declare(strict_types=1);

use Hyperf\Framework\Bootstrap\PipeMessageCallback;
use Hyperf\Framework\Bootstrap\WorkerExitCallback;
use Hyperf\Framework\Bootstrap\WorkerStartCallback;
use Hyperf\Framework\Bootstrap\WorkerStopCallback;
use Hyperf\HttpServer\Server as HttpServer;
use Hyperf\Server\Event;
use Hyperf\Server\Server;

return [
    'mode' => \getenv('MODE') === 'base' ? \SWOOLE_BASE : \SWOOLE_PROCESS,
    'servers' => [[
        'name' => 'http',
        'type' => Server::SERVER_HTTP,
        'host' => '127.0.0.1',
        'port' => (int) (\getenv('PORT') ?: 9501),
        'sock_type' => \SWOOLE_SOCK_TCP,
        'callbacks' => [Event::ON_REQUEST => [HttpServer::class, 'onRequest']],
    ]],
    'settings' => [
        'enable_coroutine' => true,
        'worker_num' => (int) (\getenv('WORKERS') ?: 2),
        'pid_file' => BASE_PATH . '/runtime/hyperf.pid',
        'max_coroutine' => 100000,
        'max_request' => (int) (\getenv('MAX_REQUEST') ?: 100000),
        'max_wait_time' => 60, /* longer than any request: what still waits or works at its end gets no answer */
    ],
    'callbacks' => [
        Event::ON_WORKER_START => [WorkerStartCallback::class, 'onWorkerStart'],
        Event::ON_WORKER_STOP => [WorkerStopCallback::class, 'onWorkerStop'],
        Event::ON_WORKER_EXIT => [WorkerExitCallback::class, 'onWorkerExit'],
        Event::ON_PIPE_MESSAGE => [PipeMessageCallback::class, 'onPipeMessage'],
    ],
];
