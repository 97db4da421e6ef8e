<?php

declare(strict_types=1);

use App\Controller\OrderController;
use Hyperf\HttpServer\Router\Router;

Router::get('/pay', [OrderController::class, 'pay']);
Router::get('/report', [OrderController::class, 'report']);
Router::get('/numbers', [OrderController::class, 'numbers']);
