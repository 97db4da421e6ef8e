<?php

/**
 * What the extension defines, for editors and analysers; a test compares it with the extension itself.
 * Programs use the package libredlock/redlock (Redlock\Client, Redlock\Lock), which stands on these classes.
 */

namespace {
    /* constants: made by ./dev docs */
    const REDLOCK_OK = 0;
    const REDLOCK_PENDING = 1;
    const REDLOCK_BUSY = 2;
    const REDLOCK_NO_QUORUM = 3;
    const REDLOCK_TIMED_OUT = 4;
    const REDLOCK_CANCELLED = 5;
    const REDLOCK_LOST = 6;
    const REDLOCK_NOT_HELD = 7;
    const REDLOCK_LIMIT = 8;
    const REDLOCK_FORKED = 9;
    const REDLOCK_IN_FLIGHT = 10;
    const REDLOCK_INVALID = 11;
    const REDLOCK_REFUSED_CONFIG = 12;
    const REDLOCK_NO_MEMORY = 13;
    const REDLOCK_INTERNAL = 14;
    const REDLOCK_UNREACHABLE = 15;
    const REDLOCK_QUARANTINED = 16;
    const REDLOCK_IS_ERROR = 1;
    const REDLOCK_IS_RETRIABLE = 2;
    const REDLOCK_IS_USAGE = 3;
    const REDLOCK_ACQUIRE = 1;
    const REDLOCK_EXTEND = 2;
    const REDLOCK_RELEASE = 3;
    const REDLOCK_INSPECT = 4;
    const REDLOCK_EXPIRE = 5;
    const REDLOCK_REMOVE = 6;
    const REDLOCK_WHO = 7;
    const REDLOCK_LIST = 8;
    const REDLOCK_EXAMINE = 9;
    const REDLOCK_AT_ONCE = 256;
    const REDLOCK_STATE_FREE = 0;
    const REDLOCK_STATE_HELD = 1;
    const REDLOCK_STATE_LOST = 2;
    const REDLOCK_STATE_ADOPTED = 3;
    const REDLOCK_STATE_FORKED = 4;
    const REDLOCK_STATE_INVALID = 5;
    const REDLOCK_LOSS_NONE = 0;
    const REDLOCK_LOSS_EXPIRED = 1;
    const REDLOCK_LOSS_GONE = 2;
    const REDLOCK_LOSS_RESTARTED = 3;
    const REDLOCK_LOSS_REFUSED = 4;
    const REDLOCK_LOSS_LIMIT = 5;
    const REDLOCK_LOSS_CLOCK = 6;
    const REDLOCK_LOSS_CLOSED = 7;
    const REDLOCK_VERDICT_UNKNOWN = 0;
    const REDLOCK_VERDICT_FREE = 1;
    const REDLOCK_VERDICT_HELD = 2;
    const REDLOCK_VERDICT_SPLIT = 3;
    const REDLOCK_VERDICT_SHARED = 4;
    const REDLOCK_TTL_ENDLESS = -1;
    const REDLOCK_REASON_NAME = 0;
    const REDLOCK_REASON_WORDS = 1;
    const REDLOCK_REASON_ADVICE = 2;
    const REDLOCK_REASON_CAUSE = 3;
    const REDLOCK_OPTION_NAME = 0;
    const REDLOCK_OPTION_TYPE = 1;
    const REDLOCK_OPTION_UNIT = 2;
    const REDLOCK_OPTION_DEFAULT = 3;
    const REDLOCK_OPTION_RANGE = 4;
    const REDLOCK_OPTION_SCOPE = 5;
    const REDLOCK_OPTION_HELP = 6;
    const REDLOCK_OPTION_RANGE_PARTS = 7;
    const REDLOCK_OPTION_PURPOSE = 8;
    const REDLOCK_ANSWER_WORDS = 0;
    const REDLOCK_ANSWER_TTL_MS = 1;
    const REDLOCK_ANSWER_TOKEN = 2;
    const REDLOCK_ANSWER_TEXT = 3;
    const REDLOCK_LISTED_ROWS = 0;
    const REDLOCK_LISTED_MORE = 1;
    const REDLOCK_LISTED_KEYS = 2;
    const REDLOCK_ROW_JSON = 0;
    const REDLOCK_ROW_RESOURCE = 1;
    const REDLOCK_BOOTSTRAP_NEW = 1;
    const REDLOCK_BOOTSTRAP_YES = 2;
    const REDLOCK_BOOTSTRAP_REPLACE = 3;
    const REDLOCK_BOOTSTRAP_DRY = 16;
    const REDLOCK_BOOTSTRAP_DID = 0;
    const REDLOCK_BOOTSTRAP_VOTES = 1;
    const REDLOCK_BOOTSTRAP_MAX_TTL_MS = 2;
    const REDLOCK_BOOTSTRAP_FOUND = 3;
    const REDLOCK_DID_NOTHING = 0;
    const REDLOCK_DID_REGISTERED = 1;
    const REDLOCK_DID_REPLACED = 2;
    const REDLOCK_DID_LEFT_ALONE = 3;
    const REDLOCK_DID_NO_ANSWER = 4;
    const REDLOCK_FOUND_NOTHING = 0;
    const REDLOCK_FOUND_VOTES = 1;
    const REDLOCK_FOUND_NEW = 2;
    const REDLOCK_FOUND_QUARANTINED = 3;
    const REDLOCK_FOUND_OTHER_NUMBER = 4;
    const REDLOCK_FOUND_OTHER_LIST = 5;
    const REDLOCK_FOUND_FOREIGN = 6;
    const REDLOCK_FOUND_REFUSED = 7;
    /* end of constants */

    /** The version of the library, "MAJOR.MINOR.PATCH". */
    function redlock_version(): string {}

    /** "OK", "BUSY", ...; "UNKNOWN" for another number. */
    function redlock_status_name(int $status): string {}

    /** One sentence for people. */
    function redlock_status_text(int $status): string {}

    /** 1 if the status has the trait (REDLOCK_IS_ERROR, ...), else 0. */
    function redlock_status_is(int $status, int $trait): int {}

    /** REDLOCK_DID_... as "nothing", "registered", "replaced", "left_alone", "no_answer"; null for another number. */
    function redlock_bootstrap_did_name(int $did): ?string {}

    /** Field REDLOCK_OPTION_... of option number $index; null past the end. */
    function redlock_option_at(int $index, int $field): ?string {}

    /** Field REDLOCK_REASON_... of reason number $index; null past the end. */
    function redlock_reason_at(int $index, int $field): ?string {}
}

namespace Redlock\Native {
    /** A client of this process: objects with the same nodes and options of clients share it, also over requests. */
    final class Client
    {
        /**
         * @param string $nodes URLs separated by commas; those among the options are only checked
         * @param array<string, bool|int|float|string> $options by the names of the option table; those that a lock may
         *     have are only checked here: give them to each Lock
         */
        public function __construct(#[\SensitiveParameter] string $nodes, #[\SensitiveParameter] array $options) {}

        /** The same number means the same native client. */
        public function id(): int {}

        /** Readable when process() has something to do. */
        public function fd(): int {}

        /** Another number in a child after a fork, where another file is behind fd(). */
        public function generation(): int {}

        /** Ends the waits of a group's locks for what they do not hold yet, also those that are about to begin. */
        public function cancel(int $group): void {}

        /** Does what is due, without blocking. */
        public function process(): void {}

        /** The waiter of the next lock whose started operation has ended; null if there is none. */
        public function next(): mixed {}

        /** process() and the first next() in one call; after a waiter, call next() until there is none. */
        public function advance(): mixed {}

        /**
         * Begins to leave within $limitMs (-1: exit_drain_ms), releasing all; without waiting, so that several clients
         * leave at the same time.
         */
        public function beginDrain(int $limitMs): void {}

        /** Waits for what beginDrain() began. False if a node did not answer. */
        public function endDrain(): bool {}

        /** The next event as JSON. */
        public function event(): ?string {}

        /** Options, nodes and counters as JSON. */
        public function describe(): string {}

        /** Figures of locks and nodes as OpenMetrics text. */
        public function metrics(): string {}

        /**
         * Ends the wait of new nodes; $mode is one of REDLOCK_BOOTSTRAP_...
         *
         * @return list<array{node: string, did: string, votes: bool, max_ttl_ms: ?int, found: string}>
         */
        public function bootstrap(int $mode): array {}

        /** The value of an option as text, passwords as ***. */
        public function get(string $name): string {}
    }

    /** One holder's handle on one resource. */
    final class Lock
    {
        /** @param array<string, bool|int|float|string> $options by the options' names; $group: see Client::cancel() */
        public function __construct(Client $client, string $resource, array $options, int $group = 0) {}

        /** Another one on the same resources, with the options that this one has now, and in its group. */
        public function another(): Lock {}

        /** The value of an option for this lock. */
        public function get(string $name): string {}

        /** Sets an option of this lock; the value as text. */
        public function set(string $name, string $value): void {}

        /** Adds a resource: the lock holds all of its resources or none. */
        public function add(string $resource): void {}

        /** start() and wait() in one call. */
        public function run(int $operation, int $arg, int $sliceMs): int {}

        /**
         * Starts REDLOCK_ACQUIRE, _EXTEND, _RELEASE, _INSPECT, _EXPIRE, _REMOVE, _WHO or _LIST, with | REDLOCK_AT_ONCE
         * to send in this call;
         * Client::next() gives $waiter (not null) when it has ended. REDLOCK_OK or why not.
         */
        public function start(int $operation, int $arg, mixed $waiter): int {}

        /** The result of the last operation, REDLOCK_PENDING while it runs. */
        public function status(): int {}

        /** As status(); once the operation has ended its waiter is dropped. */
        public function ended(): int {}

        /** Waits for the operation; REDLOCK_PENDING when $limitMs (-1: none) has passed or a signal came. */
        public function wait(int $limitMs): int {}

        /** Gives up the operation in flight; Client::next() gives its waiter. */
        public function cancel(): void {}

        /** Gives up the operation in flight and what is held, without waiting for answers. */
        public function abandon(): void {}

        /** As the constructor was given it. */
        public function resource(): string {}

        /** REDLOCK_STATE_... */
        public function state(): int {}

        /** How much longer the lock is held without an extension. */
        public function validityMs(): int {}

        /** REDLOCK_OK, or REDLOCK_INVALID: options that do not go together. */
        public function check(): int {}

        /** The fencing number, with the option fence; 0 without. */
        public function fence(): int {}

        /** Which of the permits is held or was last, from 0; -1 without the option permits. */
        public function slot(): int {}

        /** How many attempts the last acquisition or extension has made. */
        public function attempts(): int {}

        /** The token as 40 hexadecimal digits, "" before the first acquisition. */
        public function token(): string {}

        /** Takes over a token that was detached elsewhere; a status. */
        public function adopt(string $token): int {}

        /** Hands the lock over: nothing is deleted for its token any more; a status. */
        public function detach(): int {}

        /** @return array<string, array{status: int, words: string, ttl_ms: string, token: string}> by node */
        public function answers(): array {}

        /** REDLOCK_VERDICT_... of the last REDLOCK_INSPECT. */
        public function verdict(): int {}

        /** The token of the holder that the verdict speaks of, escaped; "" if there is none. */
        public function holder(): string {}

        /** The client that holds it, as JSON: client_name, host, pid, held_ms; "" if that is not known. */
        public function heldBy(): string {}

        /** REDLOCK_LISTED_...: of the last REDLOCK_LIST. */
        public function listed(int $what): int {}

        /** A row of it: REDLOCK_ROW_JSON or _RESOURCE. */
        public function row(int $index, int $field): string {}

        /** How much longer a majority keeps the keys of that holder; REDLOCK_TTL_ENDLESS: they have no TTL. */
        public function holderTtlMs(): int {}

        /** The last operation in one line. */
        public function message(): string {}

        /** Throws the exception of this status, with message and votes. */
        public function fail(int $status): void {}
    }
}

namespace Redlock\Exception {
    interface RedlockThrowable extends \Throwable
    {
        /** REDLOCK_BUSY, ...; Redlock\Status::from() makes an enum of it. */
        public function status(): int;

        /** "" where there is none, as at connect(). */
        public function resource(): string;

        /** @return array<string, string> what every node answered, by its name */
        public function votes(): array;

        /** What the body of run() returned, if it had ended. */
        public function result(): mixed;
    }

    class RedlockException extends \RuntimeException implements RedlockThrowable
    {
        /** REDLOCK_BUSY, ... */
        public int $status = REDLOCK_INTERNAL;
        public string $resource = '';
        /** @var array<string, string> what every node answered, by its name */
        public array $votes = [];
        /** What the body of run() returned, if it had ended. */
        public mixed $result = null;

        public function status(): int {}

        public function resource(): string {}

        public function votes(): array {}

        public function result(): mixed {}
    }

    class BusyException extends RedlockException
    {
        public int $status = REDLOCK_BUSY;

        /** @var ?array{client_name: string, host: string, pid: int, held_ms: int} null: another library, or unknown */
        public ?array $heldBy = null;
    }

    class NoQuorumException extends RedlockException
    {
        public int $status = REDLOCK_NO_QUORUM;
    }

    class TimedOutException extends RedlockException
    {
        public int $status = REDLOCK_TIMED_OUT;
    }

    class CancelledException extends RedlockException
    {
        public int $status = REDLOCK_CANCELLED;
    }

    class LostException extends RedlockException
    {
        public int $status = REDLOCK_LOST;
        /** "expired", "gone", "restarted", "refused", "limit", "clock" or "closed"; "" if it is not known. */
        public string $reason = '';
    }

    class NotHeldException extends RedlockException
    {
        public int $status = REDLOCK_NOT_HELD;
    }

    class LimitException extends RedlockException
    {
        public int $status = REDLOCK_LIMIT;
    }

    class ForkedException extends RedlockException
    {
        public int $status = REDLOCK_FORKED;
    }

    class InFlightException extends RedlockException
    {
        public int $status = REDLOCK_IN_FLIGHT;
    }

    class RefusedConfigException extends RedlockException
    {
        public int $status = REDLOCK_REFUSED_CONFIG;
    }

    class NoMemoryException extends RedlockException
    {
        public int $status = REDLOCK_NO_MEMORY;
    }

    class InternalException extends RedlockException
    {
        public int $status = REDLOCK_INTERNAL;
    }

    /** A wrong option, value or argument: the program or its configuration has to change. */
    class InvalidOptionException extends \ValueError implements RedlockThrowable
    {
        public int $status = REDLOCK_INVALID;
        public string $resource = '';
        /** @var array<string, string> */
        public array $votes = [];
        /** What the body of run() returned, if it had ended. */
        public mixed $result = null;

        /**
         * The message in parts: every second one is the name of an option or a number of milliseconds.
         *
         * @var list<string>
         */
        public array $parts = [];

        public function status(): int {}

        public function resource(): string {}

        public function votes(): array {}

        public function result(): mixed {}
    }
}
