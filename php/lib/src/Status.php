<?php

declare(strict_types=1);

namespace Redlock;

/** The statuses of the C library. The enum of an exception is Status::from($exception->status()). */
enum Status: int
{
    case Ok = 0;
    /** A started operation has not ended. */
    case Pending = 1;
    /** Others hold the lock. */
    case Busy = 2;
    /** Too few nodes answered. */
    case NoQuorum = 3;
    /** The wait ended before any verdict. */
    case TimedOut = 4;
    case Cancelled = 5;
    /** It was held, and is no longer. */
    case Lost = 6;
    case NotHeld = 7;
    /** maxExtensions or maxHoldMs has been reached. */
    case Limit = 8;
    /** The lock belongs to the parent process. */
    case Forked = 9;
    /** Another operation of the same object has not ended. */
    case InFlight = 10;
    /** A wrong option, value or argument. */
    case Invalid = 11;
    /** Too many nodes are ineligible to vote. */
    case RefusedConfig = 12;
    case NoMemory = 13;
    case Internal = 14;
    /** Of a node: there is no connection to it. */
    case Unreachable = 15;
    /** Of a node: it may have lost keys and does not vote for now. */
    case Quarantined = 16;

    /** One sentence for people. */
    public function text(): string
    {
        return \redlock_status_text($this->value);
    }

    public function isError(): bool
    {
        return \redlock_status_is($this->value, \REDLOCK_IS_ERROR) === 1;
    }

    /** The same call may succeed later. */
    public function isRetriable(): bool
    {
        return \redlock_status_is($this->value, \REDLOCK_IS_RETRIABLE) === 1;
    }
}
