<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

use Psr\Container\ContainerInterface;
use Psr\EventDispatcher\EventDispatcherInterface;

/**
 * @internal Hyperf's dispatcher, asked for with the first event. When it is made, so are all listeners and what they
 * need: Locks too, for which this is made.
 */
final class LateDispatcher implements EventDispatcherInterface
{
    public function __construct(private readonly ContainerInterface $container)
    {
    }

    public function dispatch(object $event): object
    {
        return $this->container->get(EventDispatcherInterface::class)->dispatch($event);
    }
}
