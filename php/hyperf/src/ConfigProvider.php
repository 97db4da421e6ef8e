<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

use Hyperf\Metric\Contract\MetricFactoryInterface;

final class ConfigProvider
{
    /** @return array<string, mixed> */
    public function __invoke(): array
    {
        return [
            'dependencies' => [Locks::class => LocksFactory::class],
            'aspects' => [Aspect\WithLockAspect::class],
            'commands' => [Command\StatusCommand::class],
            'listeners' => self::listeners(),
            'annotations' => ['scan' => ['paths' => [__DIR__, \dirname(__DIR__) . '/compat']]],
            'publish' => [[
                'id' => 'config',
                'description' => 'The clusters of Redlock.',
                'source' => \dirname(__DIR__) . '/publish/redlock.php',
                'destination' => (\defined('BASE_PATH') ? \BASE_PATH : '.') . '/config/autoload/redlock.php',
            ]],
        ];
    }

    /**
     * Clients are closed after everybody else has heard that the worker stops.
     *
     * @return array<int|class-string, int|class-string> classes, or their priorities
     */
    private static function listeners(): array
    {
        $hasMetrics = \interface_exists(MetricFactoryInterface::class);
        return [Listener\BootListener::class, Listener\WorkerListener::class => \PHP_INT_MIN,
            ...($hasMetrics ? [Listener\MetricListener::class] : [])];
    }
}
