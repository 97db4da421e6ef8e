<?php

declare(strict_types=1);

namespace Redlock\Loop;

/** A Fiber that waits for an event. */
interface Suspension
{
    /** Lets the loop run until resume(). */
    public function suspend(): void;

    /** Called from the loop; continues the Fiber, now or in the loop's next turn, if it waits. */
    public function resume(): void;
}
