<?php

declare(strict_types=1);

namespace Redlock;

/** Who holds a resource, by the answers of the nodes. */
enum Verdict: string
{
    /** Too few nodes answered. */
    case Unknown = 'unknown';

    /** A majority has no key. */
    case Free = 'free';

    /** One token is on a majority. */
    case Held = 'held';

    /** A majority is held by readers: locks with the option shared. */
    case Shared = 'shared';

    /** None of these: attempts in progress, or keys left behind on some nodes. */
    case Split = 'split';

    /** @internal the REDLOCK_VERDICT_... of the extension */
    public static function fromNative(int $verdict): self
    {
        return match ($verdict) {
            \REDLOCK_VERDICT_FREE => self::Free,
            \REDLOCK_VERDICT_HELD => self::Held,
            \REDLOCK_VERDICT_SHARED => self::Shared,
            \REDLOCK_VERDICT_SPLIT => self::Split,
            default => self::Unknown,
        };
    }
}
