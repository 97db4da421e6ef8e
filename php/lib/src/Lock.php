<?php

declare(strict_types=1);

namespace Redlock;

use Redlock\Driver\Driver;
use Redlock\Exception\BusyException;
use Redlock\Exception\InvalidOptionException;
use Redlock\Exception\LostException;
use Redlock\Exception\RedlockException;
use Redlock\Exception\RedlockThrowable;

/** A lock on the nodes of a Client, which makes it. */
final class Lock implements LockInterface
{
    private const STATES = ['free', 'held', 'lost', 'adopted', 'forked', 'invalid'];

    /** The native lock renews because run() wants it. */
    private bool $renewsForRun = false;

    /** How long to wait for nodes that are asked for the holder. */
    private const HOLDER_LIMIT_MS = 250;

    /** In nanoseconds, if there is a listener. */
    private ?int $heldSince = null;

    /** By release() or detach(), since run() began. */
    private bool $isGivenUp = false;

    /** @internal Client::lock() makes locks. */
    public function __construct(
        private readonly Driver $driver,
        private readonly Native\Lock $native,
        /** Of several, the first. */
        public readonly string $resource,
        private bool $renewIsChosen,
        private readonly string $usualRenew,
        /** @var list<string> of several, the others */
        private readonly array $more = [],
    ) {
    }

    public function resource(): string
    {
        return $this->resource;
    }

    public function acquire(?int $waitMs = null): void
    {
        $status = $this->take(__METHOD__, $waitMs);
        if ($status !== \REDLOCK_OK) {
            $this->fail($status);
        }
    }

    public function tryAcquire(?int $waitMs = 0): bool
    {
        $status = $this->take(__METHOD__, $waitMs);
        if ($status !== \REDLOCK_OK && $status !== \REDLOCK_BUSY) {
            $this->fail($status);
        }
        return $status === \REDLOCK_OK;
    }

    public function extend(?int $ttlMs = null): void
    {
        $this->setLease(__METHOD__, \REDLOCK_EXTEND, $ttlMs);
    }

    public function expire(?int $ttlMs = null): void
    {
        $this->setLease(__METHOD__, \REDLOCK_EXPIRE, $ttlMs);
    }

    public function release(): void
    {
        $state = $this->native->state();
        $this->isGivenUp = true;
        $status = $this->perform(\REDLOCK_RELEASE, 0);
        if (!self::isReleased($status, $state)) {
            $this->fail($status === \REDLOCK_CANCELLED ? \REDLOCK_LOST : $status);
        }
    }

    public function run(callable $body, ?int $waitMs = null): mixed
    {
        self::refuseWait(__METHOD__, 2, $waitMs);
        if (!$this->renewIsChosen && !$this->renewsForRun && !$this->isHeld()) { /* else it is re-entered as it is */
            $this->native->set('renew', 'true');
            $this->renewsForRun = true;
        }
        $this->driver->bodies++;
        $this->isGivenUp = false;
        $result = null;
        $hasFailed = true;
        try {
            $status = $this->perform(\REDLOCK_ACQUIRE, $waitMs ?? -2);
            if ($status === \REDLOCK_OK) {
                $result = $body($this);
            }
            $hasFailed = false;
        } finally {
            $this->driver->bodies--;
            $hasFailed && $this->releaseAfterFailure();
        }
        if ($status !== \REDLOCK_OK) {
            $this->fail($status);
        }
        $this->releaseAfterSuccess($result);
        return $result instanceof \Generator ? $this->refuseGenerator($result) : $result;
    }

    public function cancel(): void
    {
        $this->driver->cancel($this->native);
    }

    public function fence(): ?int
    {
        return $this->native->fence() ?: null;
    }

    public function slot(): ?int
    {
        $slot = $this->native->slot();

        return $slot < 0 ? null : $slot;
    }

    public function attempts(): int
    {
        return $this->native->attempts();
    }

    public function remainingMs(): int
    {
        return $this->native->validityMs();
    }

    public function isHeld(): bool
    {
        return $this->native->state() === \REDLOCK_STATE_HELD;
    }

    public function isLost(): bool
    {
        return $this->native->state() === \REDLOCK_STATE_LOST;
    }

    public function isRenewed(): bool
    {
        return $this->isHeld() && $this->native->get('renew') === 'true';
    }

    /** The option shared: others that share it, too, may hold it meanwhile. */
    public function isShared(): bool
    {
        return $this->native->get('shared') === 'true';
    }

    /** The option permits: at most so many hold the resource at a time. */
    public function permits(): int
    {
        return (int) $this->native->get('permits');
    }

    public function set(string $option, bool|int|float|string $value): void
    {
        $this->native->set($option, \is_bool($value) ? ($value ? 'true' : 'false') : (string) $value);
        if ($option === 'renew') {
            [$this->renewIsChosen, $this->renewsForRun] = [true, false];
        }
    }

    public function token(): string
    {
        return $this->native->token();
    }

    public function votes(): array
    {
        return \array_map(static fn (array $answer): string => $answer['words'], $this->native->answers());
    }

    public function message(): string
    {
        return $this->native->message();
    }

    public function detach(): string
    {
        $token = $this->native->token();
        $this->isGivenUp = true;
        $status = $this->native->detach();
        if ($status !== \REDLOCK_OK) {
            $this->fail($status);
        }
        return $token;
    }

    /** @internal Client::adopt() does. */
    public function takeUp(string $token): void
    {
        $status = $this->native->adopt($token);
        if ($status !== \REDLOCK_OK) {
            $this->fail($status);
        }
    }

    /** Runs one operation to its end and reports it to the dispatcher. Returns its status. */
    private function perform(int $operation, int $arg): int
    {
        $events = $this->driver->events;
        if ($events?->dispatcher === null) {
            return $this->driver->run($this->native, $operation, $arg);
        }
        [$began, $state] = [\hrtime(true), $this->native->state()];
        $status = $this->driver->run($this->native, $operation, $arg);
        if (!$this->isInner($operation, $status, $state)) {
            $events->tell($this->told($operation, $status, $began, $state));
        }
        return $status;
    }

    /** With the option reentrant: neither the first acquisition nor the last release. */
    private function isInner(int $operation, int $status, int $stateBefore): bool
    {
        return match ($operation) {
            \REDLOCK_ACQUIRE => $status === \REDLOCK_OK && $stateBefore === \REDLOCK_STATE_HELD,
            \REDLOCK_RELEASE => \in_array($this->native->state(), [\REDLOCK_STATE_HELD, \REDLOCK_STATE_LOST], true),
            default => false,
        };
    }

    private function told(int $operation, int $status, int $began, int $state): ?Event\LockEvent
    {
        $sinceMs = static fn (int $at): int => \intdiv(\hrtime(true) - $at, 1000000);
        if ($operation === \REDLOCK_ACQUIRE) {
            if ($status !== \REDLOCK_OK) {
                return new Event\NotAcquired($this->resource, \redlock_status_name($status), $this->message(),
                    $sinceMs($began), $this->attempts());
            }
            $this->heldSince = \hrtime(true);
            return new Event\Acquired($this->resource, $this->token(), $this->remainingMs(), $sinceMs($began),
                $this->attempts(), $this->fence());
        }
        if ($operation === \REDLOCK_RELEASE) {
            [$since, $this->heldSince] = [$this->heldSince, null];
            $heldMs = $since === null ? null : $sinceMs($since);
            return self::isReleased($status, $state) ? new Event\Released($this->resource, $heldMs) : null;
        }
        return $status === \REDLOCK_OK ? new Event\Extended($this->resource, $this->remainingMs()) : null;
    }

    private function fail(int $status): never
    {
        try {
            $this->native->fail($status);
        } catch (BusyException $busy) {
            $busy->heldBy = $this->holder();
            throw $busy;
        } catch (InvalidOptionException $refused) { /* options that do not go together are refused here */
            throw Options::inNames($refused);
        }
    }

    /**
     * The nodes are asked, of several resources about one after the other.
     *
     * @return ?array<string, int|string>
     */
    private function holder(): ?array
    {
        $known = '';
        $unknown = [$this->resource, ...$this->more];
        $untilMs = \intdiv(\hrtime(true), 1000000) + self::HOLDER_LIMIT_MS;
        while ($known === '' && $unknown !== [] && ($leftMs = $untilMs - \intdiv(\hrtime(true), 1000000)) > 0) {
            $native = $this->driver->lock(\array_shift($unknown), ['node_timeout_ms' => $leftMs]);
            $this->driver->run($native, \REDLOCK_INSPECT, 0);
            $known = $native->heldBy();
        }
        return $known === '' ? null : \json_decode($known, true);
    }

    private function setLease(string $method, int $operation, ?int $ttlMs): void
    {
        self::refuseTtl($method, $ttlMs);
        $status = $this->perform($operation, $ttlMs ?? 0);
        if ($status !== \REDLOCK_OK) {
            $this->fail($status);
        }
    }

    private function take(string $method, ?int $waitMs): int
    {
        self::refuseWait($method, 1, $waitMs);
        if ($this->renewsForRun && !$this->isHeld()) {
            $this->renewAsUsual();
        }
        return $this->perform(\REDLOCK_ACQUIRE, $waitMs ?? -2);
    }

    /** @internal */
    public static function refuseWait(string $method, int $argument, ?int $waitMs): void
    {
        if ($waitMs !== null && $waitMs < -1) {
            throw new \ValueError(
                "$method(): Argument #$argument (\$waitMs) must be null, -1 (no limit) or at least 0, $waitMs given");
        }
    }

    /** @internal */
    public static function refuseTtl(string $method, ?int $ttlMs): void
    {
        if ($ttlMs !== null && $ttlMs < 1) {
            throw new \ValueError("$method(): Argument #1 (\$ttlMs) must be null or at least 1, $ttlMs given");
        }
    }

    private function renewAsUsual(): void
    {
        $this->native->set('renew', $this->usualRenew);
        $this->renewsForRun = false;
    }

    private function releaseAfterSuccess(mixed $result): void
    {
        $state = $this->native->state();
        if ($state === \REDLOCK_STATE_FREE) {
            $this->isGivenUp || throw $this->drained($result);
            return; /* the body released or detached it */
        }
        try {
            $status = $this->perform(\REDLOCK_RELEASE, 0);
            if (!self::isReleased($status, $state)) {
                $this->fail($status === \REDLOCK_CANCELLED ? \REDLOCK_LOST : $status);
            }
        } catch (\Throwable $failure) {
            $isClosed = $failure instanceof LostException && $failure->reason === 'closed';
            throw $isClosed ? $this->drained($result) : self::carrying($result, $failure);
        }
    }

    /** The error of the body leaves as it is, so what the release came to is only logged. */
    private function releaseAfterFailure(): void
    {
        $state = $this->native->state();
        if ($state === \REDLOCK_STATE_FREE) {
            return;
        }
        $status = $this->perform(\REDLOCK_RELEASE, 0);
        if (!self::isReleased($status, $state)) {
            $this->driver->events?->warn('redlock: {message}',
                ['message' => $this->native->message(), 'status' => \redlock_status_name($status)]);
        }
    }

    /** A release that is cut short goes on inside the client: what was held has been released. */
    private static function isReleased(int $status, int $stateBefore): bool
    {
        return $status === \REDLOCK_OK || $status === \REDLOCK_CANCELLED && $stateBefore !== \REDLOCK_STATE_LOST;
    }

    /** Whoever repeats what the body has done must be able to see that it was done. */
    private static function carrying(mixed $result, \Throwable $failure): \Throwable
    {
        $own = $failure;
        if (!$failure instanceof RedlockThrowable) {
            for ($last = $failure; $last->getPrevious() !== null;) {
                $last = $last->getPrevious();
            }
            $own = new RedlockException('the body of run() had ended: what it returned is in $result');
            $class = $last instanceof \Error ? \Error::class : \Exception::class;
            (new \ReflectionProperty($class, 'previous'))->setValue($last, $own);
        }
        $own->result = $result;
        return $failure;
    }

    private function drained(mixed $result): LostException
    {
        $lost = new LostException("\"$this->resource\": its client was drained while the body of run() ran");
        [$lost->resource, $lost->result] = [$this->resource, $result];
        return $lost;
    }

    private function refuseGenerator(\Generator $result): never
    {
        $refused = new InvalidOptionException("\"$this->resource\": the body of run() returned a generator, whose code "
            . 'would run after the release: run through it inside the body, or take the lock inside the generator');
        $refused->resource = $this->resource;
        $refused->result = $result;
        throw $refused;
    }

    private function __clone()
    {
    }

    /** @return array<string, mixed> */
    public function __debugInfo(): array
    {
        return ['resource' => $this->resource, 'state' => self::STATES[$this->native->state()],
            'remainingMs' => $this->remainingMs(), 'renewed' => $this->isRenewed(), 'token' => $this->token(),
            'message' => $this->message()];
    }

    public function __serialize(): array
    {
        throw new \LogicException('a Redlock\Lock can not be serialised: detach() it and adopt() its token elsewhere');
    }
}
