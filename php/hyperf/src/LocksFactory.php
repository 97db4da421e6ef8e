<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

use Hyperf\Contract\ConfigInterface;
use Hyperf\Contract\StdoutLoggerInterface;
use Psr\Container\ContainerInterface;

final class LocksFactory
{
    public function __invoke(ContainerInterface $container): Locks
    {
        $config = $container->get(ConfigInterface::class);
        $logger = $container->has(StdoutLoggerInterface::class) ? $container->get(StdoutLoggerInterface::class) : null;
        return new Locks($config->get('redlock', []), $config->get('redis', []), $logger);
    }
}
