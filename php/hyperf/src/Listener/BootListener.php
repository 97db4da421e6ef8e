<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Listener;

use Hyperf\Contract\ConfigInterface;
use Hyperf\Event\Contract\ListenerInterface;
use Hyperf\Framework\Event\BootApplication;
use Redlock\Exception\InvalidOptionException;
use Redlock\Hyperf\Attributes;
use Redlock\Hyperf\DocblockScan;
use Redlock\Hyperf\Template;

/** Stops the boot for what would lock nothing, or the wrong thing, later. */
final class BootListener implements ListenerInterface
{
    public function __construct(private readonly ConfigInterface $config)
    {
    }

    public function listen(): array
    {
        return [BootApplication::class];
    }

    public function process(object $event): void
    {
        DocblockScan::refuse($this->config->get('annotations.scan.paths', []));
        foreach (Attributes::methods() as [$class, $method]) {
            foreach (Attributes::of($class, $method) as $spec) {
                $name = "$class::{$method->getName()}";
                $parameters = \array_map(static fn (\ReflectionParameter $p): string => $p->getName(),
                    $method->getParameters());
                (new Template($spec->resource, $name))->check($parameters);
                $this->checkOnBusy($spec->onBusy, $class, $name);
            }
        }
    }

    private function checkOnBusy(?string $onBusy, string $class, string $name): void
    {
        if ($onBusy !== null
            && (!\method_exists($class, $onBusy) || !(new \ReflectionMethod($class, $onBusy))->isPublic())) {
            throw new InvalidOptionException("$name: onBusy is '$onBusy', which is no public method of $class");
        }
    }
}
