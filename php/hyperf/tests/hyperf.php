<?php

declare(strict_types=1);

/* What the component needs of Hyperf, for tests without it. */

namespace Hyperf\Event\Contract {
    interface ListenerInterface
    {
        public function listen(): array;

        public function process(object $event): void;
    }
}

namespace Hyperf\Framework\Event {
    final class OnWorkerExit
    {
    }

    final class OnWorkerStop
    {
    }
}

namespace Hyperf\Di\Annotation {
    abstract class AbstractAnnotation
    {
    }

    abstract class AbstractMultipleAnnotation extends AbstractAnnotation
    {
    }
}
