<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

final class ConfigProvider
{
    /** @return array<string, mixed> */
    public function __invoke(): array
    {
        return [
            'dependencies' => [Locks::class => LocksFactory::class],
            'aspects' => [Aspect\RedLockAspect::class],
            'commands' => [Command\StatusCommand::class],
            'listeners' => [Listener\BootListener::class, Listener\WorkerListener::class],
            'annotations' => ['scan' => ['paths' => [__DIR__, \dirname(__DIR__) . '/compat']]],
            'publish' => [[
                'id' => 'config',
                'description' => 'The clusters of Redlock.',
                'source' => \dirname(__DIR__) . '/publish/redlock.php',
                'destination' => (\defined('BASE_PATH') ? \BASE_PATH : '.') . '/config/autoload/redlock.php',
            ]],
        ];
    }
}
