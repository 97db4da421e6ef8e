<?php

declare(strict_types=1);

namespace Redlock\Testing;

use Redlock\Exception\BusyException;
use Redlock\Exception\InvalidOptionException;
use Redlock\Exception\LimitException;
use Redlock\Exception\LostException;
use Redlock\Exception\NoQuorumException;
use Redlock\Exception\NotHeldException;
use Redlock\Native;

/** @internal What a hold of a MemoryClient has in place of Native\Lock: the same methods over a Store. */
final class Handle
{
    /** @var list<string> */
    private array $resources;

    private int $state = \REDLOCK_STATE_FREE;
    private string $token = '';
    private string $message = '';
    private int $status = \REDLOCK_OK;

    /** Whom an inspection has found. */
    private string $holder = '';
    private string $loss = '';
    private int $untilMs = 0;
    private int $slot = -1;
    private int $attempts = 0;
    private int $depth = 0;
    private int $extensions = 0;
    private int $sinceMs = 0;
    private ?InvalidOptionException $refused = null;

    /** Has the options, and refuses what nodes would refuse by them; it asks no node. */
    private readonly Native\Lock $native;

    /**
     * @param \WeakMap<Handle, true> $handles where it is listed
     * @param array<string, mixed> $options by the names of the table
     */
    public function __construct(
        private readonly Native\Client $client,
        private readonly Store $store,
        private readonly \WeakMap $handles,
        string $resource,
        private array $options,
    ) {
        $this->native = new Native\Lock($client, $resource, $options);
        $this->resources = [$resource];
        $handles[$this] = true;
    }

    public function another(): self
    {
        $another = new self($this->client, $this->store, $this->handles, $this->resources[0], $this->options);
        \array_map($another->add(...), \array_slice($this->resources, 1));
        return $another;
    }

    public function resource(): string
    {
        return $this->resources[0];
    }

    public function get(string $name): string
    {
        return $this->native->get($name);
    }

    public function set(string $name, string $value): void
    {
        $this->native->set($name, $value);
        $this->options[$name] = $value;
    }

    public function add(string $resource): void
    {
        $this->native->add($resource);
        $this->resources[] = $resource;
    }

    /** Runs an operation to its end, its status; waiting for a busy lock lets the time of the store pass. */
    public function run(int $operation, int $arg): int
    {
        return match ($operation) {
            \REDLOCK_ACQUIRE => $this->acquire($arg),
            \REDLOCK_EXTEND => $this->extend($arg, false),
            \REDLOCK_EXPIRE => $this->extend($arg, true),
            \REDLOCK_RELEASE => $this->release(),
            \REDLOCK_INSPECT => $this->inspect(),
            \REDLOCK_REMOVE => $this->remove(),
            default => \REDLOCK_OK,
        };
    }

    public function state(): int
    {
        if ($this->state === \REDLOCK_STATE_HELD) {
            $held = $this->store->find($this->token);
            $this->untilMs = $held['untilMs'] ?? $this->untilMs;
            $held === null && $this->lose();
        }
        return $this->state;
    }

    public function validityMs(): int
    {
        return $this->state() === \REDLOCK_STATE_HELD ? $this->untilMs - $this->store->nowMs : 0;
    }

    public function fence(): int
    {
        return $this->get('fence') === 'true' ? (int) \hexdec($this->token) : 0;
    }

    public function slot(): int
    {
        return (int) $this->get('permits') > 1 ? $this->slot : -1;
    }

    public function attempts(): int
    {
        return $this->attempts;
    }

    public function token(): string
    {
        return $this->token;
    }

    public function adopt(string $token): int
    {
        $status = $this->native->adopt($token);
        if ($status !== \REDLOCK_OK) {
            return $status;
        }
        $this->native->detach(); /* it only checks */
        [$this->token, $this->state, $this->depth] = [$token, \REDLOCK_STATE_ADOPTED, 1];
        $this->slot = (int) $this->get('slot');
        return \REDLOCK_OK;
    }

    public function detach(): int
    {
        if ($this->depth > 1) {
            $this->refused = new InvalidOptionException("detach: \"{$this->resource()}\" was acquired $this->depth "
                . 'times; release it until one is left');
            return \REDLOCK_INVALID;
        }
        $status = $this->state === \REDLOCK_STATE_ADOPTED ? \REDLOCK_OK : $this->statusOfHeld();
        if ($status === \REDLOCK_OK) {
            $this->store->stopRenewing($this->token);
            $this->state = \REDLOCK_STATE_FREE;
        }
        return $status;
    }

    /** @return array<string, array{status: int, words: string, ttl_ms: string, token: string}> */
    public function answers(): array
    {
        return ['memory' => ['status' => $this->status, 'words' => $this->message,
            'ttl_ms' => $this->holder === '' ? '' : (string) $this->holderTtlMs(), 'token' => $this->holder]];
    }

    public function verdict(): int
    {
        return match ($this->status) {
            \REDLOCK_NO_QUORUM => \REDLOCK_VERDICT_UNKNOWN,
            \REDLOCK_OK => \REDLOCK_VERDICT_FREE,
            default => $this->store->find($this->holder)['isShared'] ? \REDLOCK_VERDICT_SHARED
                : \REDLOCK_VERDICT_HELD,
        };
    }

    public function holder(): string
    {
        return $this->holder;
    }

    public function holderTtlMs(): int
    {
        return $this->store->find($this->holder)['untilMs'] - $this->store->nowMs;
    }

    public function heldBy(): string
    {
        return '';
    }

    public function message(): string
    {
        return "\"{$this->resource()}\": $this->message";
    }

    public function abandon(): void
    {
        $this->store->free($this->token);
        $this->state = \REDLOCK_STATE_FREE;
    }

    /** Its client has ended. */
    public function close(): void
    {
        if ($this->state() === \REDLOCK_STATE_HELD) {
            $this->store->free($this->token);
            $this->lose('closed');
        }
    }

    public function fail(int $status): never
    {
        $failure = match ($status) {
            \REDLOCK_BUSY => new BusyException($this->message()),
            \REDLOCK_NO_QUORUM => new NoQuorumException($this->message()),
            \REDLOCK_LIMIT => new LimitException($this->message()),
            \REDLOCK_LOST => new LostException($this->message()),
            \REDLOCK_NOT_HELD => new NotHeldException($this->message()),
            default => $this->refused ?? $this->native->fail($status),
        };
        if ($failure instanceof LostException) {
            $failure->reason = $this->loss;
        }
        [$failure->resource, $failure->votes] = [$this->resource(), ['memory' => $this->message]];
        throw $failure;
    }

    private function inspect(): int
    {
        if ($this->native->check() !== \REDLOCK_OK) {
            return \REDLOCK_INVALID;
        }
        $this->holder = $this->meant()[0] ?? '';
        return match (true) {
            !$this->store->reachable => $this->told(\REDLOCK_NO_QUORUM, 'unreachable'),
            $this->holder === '' => $this->told(\REDLOCK_OK, 'free'),
            default => $this->told(\REDLOCK_BUSY, 'busy'),
        };
    }

    private function remove(): int
    {
        if (!$this->store->reachable) {
            return $this->told(\REDLOCK_NO_QUORUM, 'too few nodes answered: unreachable');
        }
        \array_map($this->store->free(...), $this->meant());
        return $this->told(\REDLOCK_OK, 'removed');
    }

    /** @return list<string> the holders of its slot, without permits the first one, or of all permits */
    private function meant(): array
    {
        $slot = (int) $this->get('permits') > 1 ? (int) $this->get('slot') : 0;
        return \array_values(\array_filter($this->store->holders($this->resources),
            fn (string $token): bool => $slot < 0 || $this->store->find($token)['slot'] === $slot));
    }

    private function acquire(int $waitMs): int
    {
        if ($this->depth > 0 && \in_array($this->state(), [\REDLOCK_STATE_HELD, \REDLOCK_STATE_LOST], true)) {
            $status = $this->statusOfHeld();
            $this->depth += $status === \REDLOCK_OK ? 1 : 0;
            return $status;
        }
        $this->refused = null;
        if ($this->native->check() !== \REDLOCK_OK || $this->refusesNames()) {
            return \REDLOCK_INVALID;
        }
        $this->attempts = 1;
        if (!$this->store->reachable) {
            return $this->told(\REDLOCK_NO_QUORUM, 'too few nodes answered: unreachable');
        }
        $leftMs = $waitMs < -1 ? (int) $this->get('wait_ms') : $waitMs;
        while (($token = $this->taken()) === null) {
            $busyMs = $this->store->nextEndMs($this->resources);
            if ($busyMs === null || $leftMs >= 0 && $leftMs < $busyMs) {
                $this->store->pass(\max(0, $leftMs));
                return $this->told(\REDLOCK_BUSY, 'held by others');
            }
            $this->store->pass($busyMs);
            $leftMs -= $leftMs < 0 ? 0 : $busyMs;
            $this->attempts++;
        }
        [$this->token, $this->state, $this->depth] = [$token, \REDLOCK_STATE_HELD, 1];
        [$this->slot, $this->sinceMs, $this->extensions] = [$this->store->find($token)['slot'], $this->store->nowMs, 0];
        return $this->told(\REDLOCK_OK, 'granted');
    }

    private function taken(): ?string
    {
        $ttlMs = (int) $this->get('ttl_ms');
        return $this->store->take($this->resources, $ttlMs, $this->is('renew'), $this->longestMs($ttlMs),
            $this->is('shared'), (int) $this->get('permits'), (int) $this->get('slot'),
            $this->get('layout') === 'hash');
    }

    private function is(string $option): bool
    {
        return $this->get($option) === 'true';
    }

    private function extend(int $ttlMs, bool $mayShorten): int
    {
        $ttlMs = $ttlMs ?: (int) $this->get('ttl_ms');
        if ($this->refusesTtl($ttlMs)) {
            return \REDLOCK_INVALID;
        }
        $status = $this->statusOfHeld();
        if ($status === \REDLOCK_OK && ($refusal = $this->beyondLimits($ttlMs, $mayShorten)) !== null) {
            return $this->told(\REDLOCK_LIMIT, "no further extension$refusal");
        }
        if ($status === \REDLOCK_OK && !$this->store->reachable) {
            $status = $this->told(\REDLOCK_NO_QUORUM, 'too few nodes answered: unreachable');
        }
        if ($status === \REDLOCK_OK) {
            $this->extensions += $mayShorten ? 0 : 1;
            $leftMs = $mayShorten ? 0 : $this->store->find($this->token)['untilMs'] - $this->store->nowMs;
            $this->sinceMs = $this->state === \REDLOCK_STATE_ADOPTED ? $this->store->nowMs : $this->sinceMs;
            $this->store->hold($this->token, \max($ttlMs, $leftMs), $this->is('renew'),
                $this->sinceMs + $this->longestMs($ttlMs), $this->is('shared'));
            $this->state = \REDLOCK_STATE_HELD;
            $this->message = 'extended';
        }
        return $status;
    }

    /** For how long after its acquisition it may be held if it is extended by $ttlMs. */
    private function longestMs(int $ttlMs): float
    {
        $longestMs = (int) $this->get('max_hold_ms');
        $acquiredWithMs = $ttlMs > $longestMs && $ttlMs <= (int) $this->get('ttl_ms') ? $ttlMs : 0;
        return $longestMs < 0 ? \INF : $longestMs + $acquiredWithMs;
    }

    /** What max_extensions and max_hold_ms say, in the words of the core. */
    private function beyondLimits(int $ttlMs, bool $mayShorten): ?string
    {
        [$most, $heldMs] = [(int) $this->get('max_extensions'), $this->store->nowMs - $this->sinceMs];
        return match (true) {
            $this->state !== \REDLOCK_STATE_HELD => null,
            !$mayShorten && $most >= 0 && $this->extensions >= $most => ": max_extensions is $most",
            $heldMs + $ttlMs > $this->longestMs($ttlMs) =>
                " by ttl_ms $ttlMs: max_hold_ms is {$this->get('max_hold_ms')}, held for $heldMs ms",
            default => null,
        };
    }

    /** Names of the library's own keys: the native lock refuses them where it asks nodes, or adopts a token. */
    private function refusesNames(): bool
    {
        try {
            foreach ($this->resources as $resource) {
                $probe = new Native\Lock($this->client, $resource, []);
                $probe->adopt('any') === \REDLOCK_OK || $probe->fail(\REDLOCK_INVALID);
                $probe->detach();
            }
        } catch (InvalidOptionException $refused) {
            $this->refused = $refused;
        }
        return $this->refused !== null;
    }

    private function refusesTtl(int $ttlMs): bool
    {
        $this->refused = null;
        try {
            $options = ['ttl_ms' => $ttlMs, 'fence' => false] + $this->options; /* the number is there already */
            $probe = new Native\Lock($this->client, $this->resource(), $options);
            $probe->check() === \REDLOCK_OK || $probe->fail(\REDLOCK_INVALID);
        } catch (InvalidOptionException $refused) {
            $this->refused = $refused;
        }
        return $this->refused !== null;
    }

    private function release(): int
    {
        $status = $this->statusOfHeld();
        if ($status === \REDLOCK_BUSY) {
            $this->state = \REDLOCK_STATE_FREE;
        } elseif ($status !== \REDLOCK_NOT_HELD && --$this->depth === 0) {
            $this->state === \REDLOCK_STATE_LOST || $this->abandon();
            $this->state = \REDLOCK_STATE_FREE;
            $this->message = $status === \REDLOCK_OK ? 'released' : $this->message;
        }
        return $status;
    }

    private function statusOfHeld(): int
    {
        $state = $this->state();
        if ($state === \REDLOCK_STATE_ADOPTED) {
            $held = $this->store->find($this->token);
            if ($held === null || \array_diff($this->resources, $held['resources']) !== []) {
                $this->lose('gone');
            } elseif ($held['isShared'] && !$this->is('shared')) {
                return $this->told(\REDLOCK_BUSY, 'held in another form: shared; give shared');
            }
        }
        return match ($this->state) {
            \REDLOCK_STATE_FREE => $this->told(\REDLOCK_NOT_HELD, 'not acquired by this handle'),
            \REDLOCK_STATE_LOST => \REDLOCK_LOST,
            default => \REDLOCK_OK,
        };
    }

    private function lose(?string $why = null): void
    {
        $this->state = \REDLOCK_STATE_LOST;
        $isOver = $this->sinceMs + $this->longestMs((int) $this->get('ttl_ms')) <= $this->store->nowMs;
        $this->loss = $why ?? match (true) {
            !isset($this->store->lapsed[$this->token]) => 'gone',
            $isOver && $this->is('renew') => 'limit',
            default => 'expired',
        };
        $this->message = "the lock was lost ($this->loss)";
    }

    private function told(int $status, string $message): int
    {
        $this->message = $message;
        return $this->status = $status;
    }

    public function __destruct()
    {
        $this->state === \REDLOCK_STATE_HELD && $this->abandon();
    }
}
