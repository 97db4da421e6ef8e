<?php

declare(strict_types=1);

namespace Redlock;

use Redlock\Driver\Driver;
use Redlock\Exception\BusyException;
use Redlock\Exception\InvalidOptionException;
use Redlock\Testing\Handle;

/** A resource of a Client, which makes it, with options; each acquisition is a Hold of its own. */
final class Lock implements LockInterface
{
    /** So many lost holds are kept for their owners. */
    private const LOST_KEPT = 1000;

    /** Of several, the first. */
    public readonly string $resource;

    /** @var ?Hold what this object acquired last (untyped, see Hold). What has ended leaves at the next acquisition. */
    private $newest = null;

    /** @var array<int, Hold> what it acquired before */
    private array $older = [];

    /** What has checked the options, until it becomes the first hold's. */
    private Native\Lock|Handle|null $checked;

    /** What the other holds' are made of. */
    private Native\Lock|Handle|null $model = null;

    /** @var ?\WeakMap<Hold, mixed> where its holds are listed, too */
    private ?\WeakMap $holdsOfAll = null;

    private bool $isStopped = false;
    private ?Hold $refused = null;

    /** @var list<string> of several resources, the others */
    private array $more = [];

    /** @var array<string, mixed> by the names of the table */
    private array $options;

    private bool $isReentrant;
    private bool $admitsSeveral;

    /**
     * @internal Client::lock() makes locks.
     * @param string|list<string> $resource
     * @param array<string, mixed> $given its own options, by the names of the table
     * @param array<string, mixed> $defaults the client's
     * @param bool $isElected its holds are terms
     */
    public function __construct(
        private Driver $driver,
        string|array $resource,
        private array $given,
        private array $defaults,
        private bool $isElected = false,
    ) {
        if (\is_array($resource)) {
            $this->more = Options::resources($resource);
            $resource = \array_shift($this->more);
        }
        $this->resource = $resource;
        $options = $given + $defaults;
        $this->admitsSeveral = isset($options['shared']) && Options::isTrue($options['shared'])
            || isset($options['permits']) && \filter_var($options['permits'], \FILTER_VALIDATE_INT) > 1;
        if (($this->admitsSeveral || $this->more !== []) && !isset($given['fence'])) {
            unset($options['fence']); // that of all locks: one of this kind has no number
        }
        $this->options = $options;
        $this->isReentrant = isset($options['reentrant']) && Options::isTrue($options['reentrant']);
        $this->checked = $this->made();
    }

    public function resource(): string
    {
        return $this->resource;
    }

    public function acquire(?int $waitMs = null): Hold
    {
        $waitMs === null || $waitMs >= -1 || self::refuseWait(__METHOD__, 1, $waitMs);
        return $this->take($waitMs);
    }

    public function tryAcquire(?int $waitMs = 0): Hold|false
    {
        $waitMs === null || $waitMs >= -1 || self::refuseWait(__METHOD__, 1, $waitMs);
        return $this->take($waitMs, isTried: true) ?? false;
    }

    public function refused(): ?BusyException
    {
        try {
            $this->refused?->fail(\REDLOCK_BUSY);
        } catch (BusyException $busy) {
            return $busy;
        }
        return null;
    }

    public function run(callable $body, ?int $waitMs = null): mixed
    {
        $waitMs === null || $waitMs >= -1 || self::refuseWait(__METHOD__, 2, $waitMs);
        return $this->take($waitMs, isBlock: true)->around($body);
    }

    public function cancel(): void
    {
        $this->checked = $this->model = null; /* a wait that begins later is another */
        $this->driver->cancel(\spl_object_id($this));
    }

    /** @internal Ends all waits, and those that begin later after one attempt. */
    public function stop(): void
    {
        $this->isStopped = true;
        $this->cancel();
    }

    /** @param never ...$unknown */
    public function with(
        /* options of locks: made by ./dev docs */
        ?int $ttlMs = null, ?int $waitMs = null, ?int $outageWaitMs = null, ?int $retryCount = null,
        ?int $retryDelayMs = null, ?float $retryJitter = null, ?bool $queue = null, ?bool $fence = null,
        ?bool $shared = null, ?int $permits = null, ?int $slot = null, ?string $layout = null,
        ?float $driftFactor = null, int|string|null $nodeTimeoutMs = null, int|string|null $minValidityMs = null,
        ?bool $renew = null, ?bool $reentrant = null, ?int $maxExtensions = null, ?int $maxHoldMs = null,
        ?bool $strictRelease = null,
        /* end of options */
        mixed ...$unknown,
    ): self {
        try {
            return $this->remade(Options::given(\get_defined_vars(), $unknown));
        } catch (InvalidOptionException $refused) {
            throw Options::inNames($refused);
        }
    }

    /**
     * @internal
     * @param array<string, mixed> $options in place of its own, by the names of the table
     * @param ?\Closure(Driver): Driver $drive
     * @param bool $isElected as before, or from now on
     */
    public function remade(array $options, ?\Closure $drive = null, bool $isElected = false): self
    {
        $driver = $drive === null ? $this->driver : $drive($this->driver);
        $other = new self($driver, [$this->resource, ...$this->more], $options + $this->given, $this->defaults,
            $isElected || $this->isElected);
        $other->holdsOfAll = $this->holdsOfAll;
        return $other;
    }

    /** @internal @param \WeakMap<Hold, mixed> $all where its holds are listed from now on */
    public function listHolds(\WeakMap $all): void
    {
        $this->holdsOfAll = $all;
    }

    public function status(): ResourceStatus
    {
        $permits = $this->option('slot') < 0 ? (int) $this->option('permits') : 1;
        $asked = $permits === 1
            ? \array_map(fn (string $one): Native\Lock|Handle => $this->driver->handle($one, $this->options),
                [$this->resource, ...$this->more])
            : \array_map(fn (int $slot): Native\Lock|Handle => $this->driver->handle($this->resource,
                ['slot' => $slot] + $this->options), \range(0, $permits - 1));
        $parts = \array_map($this->answered(...), $asked);
        return \count($parts) === 1 ? $parts[0] : ResourceStatus::ofParts($parts, $permits > 1);
    }

    private function answered(Native\Lock|Handle $asking): ResourceStatus
    {
        $status = $this->driver->run($asking, \REDLOCK_INSPECT, 0);
        if (\redlock_status_is($status, \REDLOCK_IS_USAGE) && $status !== \REDLOCK_REFUSED_CONFIG) {
            $asking->fail($status);
        }
        $verdict = Verdict::fromNative($asking->verdict());
        $isHeld = $verdict === Verdict::Held || $verdict === Verdict::Shared;
        return new ResourceStatus($asking->resource(), $verdict, $asking->message(),
            ($isHeld ? $asking->holder() : '') ?: null, $isHeld ? $asking->holderTtlMs() : null, $asking->answers(),
            $isHeld ? \json_decode($asking->heldBy(), true) : null);
    }

    /** @internal Client::remove() does. */
    public function remove(): void
    {
        $native = $this->made();
        $status = $this->driver->run($native, \REDLOCK_REMOVE, 0);
        $status === \REDLOCK_OK || $native->fail($status);
    }

    /** @internal Client::adopt() does. */
    public function adopt(string $token): Hold
    {
        $hold = new Hold($this->driver, $this->made(), $this->resource, null);
        $hold->adopt($token);
        return $hold;
    }

    public function extend(?int $ttlMs = null): void
    {
        $this->mine()->extend($ttlMs);
    }

    public function expire(?int $ttlMs = null): void
    {
        $this->mine()->expire($ttlMs);
    }

    public function downgrade(?int $ttlMs = null): void
    {
        $this->mine()->downgrade($ttlMs);
    }

    public function release(): void
    {
        $this->mine()->release();
    }

    public function detach(): string
    {
        return $this->mine()->detach();
    }

    public function check(): void
    {
        $this->mine()->check();
    }

    public function remainingMs(): int
    {
        return $this->own()?->remainingMs() ?? 0;
    }

    public function isHeld(): bool
    {
        return $this->own()?->isHeld() ?? false;
    }

    public function isLost(): bool
    {
        return $this->own()?->isLost() ?? false;
    }

    public function isRenewed(): bool
    {
        return $this->own()?->isRenewed() ?? false;
    }

    public function fence(): ?int
    {
        return $this->mine()->fence();
    }

    public function slot(): ?int
    {
        return $this->mine()->slot();
    }

    public function token(): string
    {
        return $this->mine()->token();
    }

    public function attempts(): int
    {
        return $this->mine()->attempts();
    }

    public function votes(): array
    {
        return $this->mine()->votes();
    }

    public function message(): string
    {
        return $this->mine()->message();
    }

    private static function refuseWait(string $method, int $argument, int $waitMs): never
    {
        throw new \ValueError(
            "$method(): Argument #$argument (\$waitMs) must be null, -1 (no limit) or at least 0, $waitMs given");
    }

    /** @internal The value of an option by the name of the table, as text. */
    public function option(string $name): string
    {
        return ($this->checked ?? $this->model ??= $this->made())->get($name);
    }

    private function made(): Native\Lock|Handle
    {
        return $this->driver->handle($this->resource, $this->options, $this->more, \spl_object_id($this));
    }

    /** The caller's hold again, with the option reentrant, or a new one; null: busy, and it is only tried. */
    private function take(?int $waitMs, bool $isBlock = false, bool $isTried = false): ?Hold
    {
        $owner = $this->driver->owner(); /* first: the last hold may have the same reference */
        if ($this->newest?->isReleased()) {
            $this->newest = null;
        }
        $hold = $this->newest === null && $this->older === [] ? null : $this->again($owner);
        if ($hold === null) {
            $native = $this->checked;
            if ($native === null) {
                $native = ($this->model ??= $this->made())->another();
            } else {
                $this->checked = null;
            }
            $isBlock && !isset($this->options['renew']) && $native->set('renew', 'true');
            $status = $this->driver->run($native, \REDLOCK_ACQUIRE, $this->isStopped ? 0 : $waitMs ?? -2);
            $hold = $this->isElected ? new Term($this->driver, $native, $this->resource, $owner)
                : new Hold($this->driver, $native, $this->resource, $owner);
            if ($status === \REDLOCK_OK) {
                $this->newest === null || $this->older[] = $this->newest;
                $this->newest = $hold;
                $this->holdsOfAll === null || $this->holdsOfAll[$hold] = null;
                return $hold;
            }
        } else {
            $status = $hold->retake($waitMs ?? -2);
        }
        if ($status === \REDLOCK_OK) {
            return $hold;
        }
        if ($status === \REDLOCK_BUSY && $isTried) {
            $this->refused = $hold;
            return null;
        }
        $hold->fail($status);
    }

    /**
     * The caller's hold if it is re-entered. Else takes off what is over, and what an owner who wants it anew lost, or
     * one that has ended.
     */
    private function again(?\WeakReference $owner): ?Hold
    {
        $hold = $this->isReentrant ? $this->own($owner, takesLost: false) : null;
        if ($hold !== null && !$hold->isForked()) {
            return $hold;
        }
        if ($this->newest !== null) {
            $this->older[] = $this->newest;
            $this->newest = null;
        }
        foreach ($this->older as $id => $hold) {
            $isGivenUp = !$this->admitsSeveral && $hold->isLost() && ($hold->isOf($owner) || $hold->passesTo($owner));
            $isGivenUp && $hold->giveUp();
            if ($isGivenUp || $hold->hasEnded() || \count($this->older) > self::LOST_KEPT && $hold->isLost()) {
                unset($this->older[$id]);
            }
        }
        return null;
    }

    /** @return array<int, Hold> the newest last */
    private function holds(): array
    {
        return $this->newest === null ? $this->older : [...$this->older, $this->newest];
    }

    /** The newest hold of an owner, the caller, or the only one if its owner has ended; null without. */
    private function own(?\WeakReference $owner = null, bool $takesLost = true): ?Hold
    {
        $live = [];
        $owner ??= $this->driver->owner();
        foreach (\array_reverse($this->holds()) as $hold) {
            if (!$hold->hasEnded()) {
                if ($hold->isOf($owner)) {
                    return $hold;
                }
                $live[] = $hold;
            }
        }
        $isLeft = \count($live) === 1 && ($takesLost || !$live[0]->isLost());
        return $isLeft && $live[0]->passesTo($owner) ? $live[0] : null;
    }

    private function mine(): Hold
    {
        return $this->own() ?? throw Hold::notHeld($this->resource,
            \array_filter($this->holds(), static fn (Hold $hold): bool => $hold->isHeld()) === []
            ? 'no hold of this object is the caller\'s'
            : 'another Fiber or coroutine has it by this object; the hold that acquire() returned may act anywhere');
    }

    private function __clone()
    {
    }

    /** @return array<string, mixed> */
    public function __debugInfo(): array
    {
        $states = \array_map(static fn (Hold $hold): string => $hold->__debugInfo()['state'], $this->holds());
        return ['resource' => $this->resource, 'holds' => \implode(', ', $states)];
    }

    public function __serialize(): array
    {
        throw new \LogicException('a Redlock\Lock can not be serialised: make it anew in the other process');
    }
}
