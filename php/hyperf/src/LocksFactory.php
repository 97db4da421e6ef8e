<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

use Hyperf\Contract\ConfigInterface;
use Hyperf\Contract\StdoutLoggerInterface;
use Psr\Container\ContainerInterface;
use Psr\EventDispatcher\EventDispatcherInterface;

final class LocksFactory
{
    public function __invoke(ContainerInterface $container): Locks
    {
        $config = $container->get(ConfigInterface::class);
        $clusters = (array) ($config->get('redlock') ?? require \dirname(__DIR__) . '/publish/redlock.php');
        $logger = $container->has(StdoutLoggerInterface::class) ? $container->get(StdoutLoggerInterface::class) : null;
        $dispatcher = $container->has(EventDispatcherInterface::class) ? new LateDispatcher($container) : null;
        return new Locks($clusters, (array) $config->get('redis', []), $logger, $dispatcher);
    }
}
