<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Listener;

use Hyperf\Contract\ConfigInterface;
use Hyperf\Event\Contract\ListenerInterface;
use Hyperf\Framework\Event\BootApplication;
use Redlock\Hyperf\Attributes;
use Redlock\Hyperf\BootCheck;
use Redlock\Hyperf\DocblockScan;
use Redlock\Hyperf\Heirs;
use Redlock\Hyperf\Locks;
use Redlock\Hyperf\Reach;
use Redlock\Hyperf\Unread;

/** Stops the boot for what would lock nothing, or the wrong thing, later. */
final class BootListener implements ListenerInterface
{
    public function __construct(private readonly ConfigInterface $config, private readonly Locks $locks)
    {
    }

    public function listen(): array
    {
        return [BootApplication::class];
    }

    public function process(object $event): void
    {
        $paths = $this->config->get('annotations.scan.paths', []);
        DocblockScan::refuse($paths);
        Unread::refuse($paths);
        $check = new BootCheck($this->locks);
        $methods = Attributes::methods();
        foreach ($methods as $method) {
            $check->method($method->class, $method, Attributes::of($method->class, $method));
        }
        $classes = $methods === [] ? [] : Heirs::of($paths, Attributes::classes());
        foreach (Reach::overrides($classes) as $words) {
            $this->locks->warn($words);
        }
    }
}
