<?php

declare(strict_types=1);

namespace Redlock;

/**
 * One term of a leader, a hold: it lasts until the body of Election::run() ends or the lock is lost. From the loss on
 * somebody else may lead, whatever the body does: it asks isLost(), or calls check() before what cannot be undone; the
 * body may let its LostException pass: then it stands by again.
 */
final class Term extends Hold
{
    /** The number of the term, larger than that of every leader before. */
    public function fence(): int
    {
        return (int) parent::fence();
    }
}
