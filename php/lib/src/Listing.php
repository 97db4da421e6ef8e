<?php

declare(strict_types=1);

namespace Redlock;

/**
 * The locks that the nodes have, in the order of their names.
 *
 * @implements \IteratorAggregate<int, ListedLock>
 */
final class Listing implements \IteratorAggregate, \Countable
{
    /**
     * @param list<ListedLock> $locks
     * @param bool $more there are others: the time was over, or they are more than 10,000
     */
    public function __construct(public readonly array $locks, public readonly bool $more = false)
    {
    }

    /** @return \ArrayIterator<int, ListedLock> */
    public function getIterator(): \ArrayIterator
    {
        return new \ArrayIterator($this->locks);
    }

    public function count(): int
    {
        return \count($this->locks);
    }
}
