<?php

declare(strict_types=1);

namespace Redlock;

use Redlock\Driver\Driver;
use Redlock\Exception\BusyException;
use Redlock\Exception\ForkedException;
use Redlock\Exception\InvalidOptionException;
use Redlock\Exception\LimitException;
use Redlock\Exception\LostException;
use Redlock\Exception\NotHeldException;
use Redlock\Exception\RedlockException;
use Redlock\Exception\RedlockThrowable;
use Redlock\Testing\Handle;

/** One hold, with a native handle that no other hold ever gets; Lock makes it. It refers to no Lock. */
class Hold implements HoldInterface
{
    private const STATES = ['free', 'held', 'lost', 'adopted', 'forked', 'invalid'];

    /** @internal How long to wait for nodes that are asked for the holder. */
    public const HOLDER_LIMIT_MS = 250;

    /** How often it was taken and not released, with the option reentrant. */
    private int $depth = 1;

    /** Bodies of run() that it is held around. */
    private int $bodies = 0;

    /** Why it was lost, once the handle does not know any more. */
    private ?string $loss = null;

    /** @internal */
    final public function __construct(
        /** @var Driver without a type, like $native and $owner: PHP would check it at each acquisition */
        private $driver,
        /** @var Native\Lock|Handle */
        private $native,
        /** Of several, the first. */
        public readonly string $resource,
        /** @var ?\WeakReference whose it is: a Fiber or a coroutine; null: it was acquired outside of them */
        private $owner,
    ) {
    }

    public function resource(): string
    {
        return $this->resource;
    }

    public function extend(?int $ttlMs = null): void
    {
        $this->setLease(__METHOD__, \REDLOCK_EXTEND, $ttlMs);
    }

    public function expire(?int $ttlMs = null): void
    {
        $this->setLease(__METHOD__, \REDLOCK_EXPIRE, $ttlMs);
    }

    public function downgrade(?int $ttlMs = null): void
    {
        $this->refuseWhatIsOver();
        $before = $this->native->get('shared');
        $this->native->set('shared', 'true');
        try {
            $this->setLease(__METHOD__, \REDLOCK_EXTEND, $ttlMs);
        } catch (LimitException | \ValueError $refused) { /* nothing was sent */
            $this->native->set('shared', $before);
            throw $refused;
        }
    }

    public function release(): void
    {
        $status = $this->driver->run($this->native, \REDLOCK_RELEASE, 0);
        if ($status !== \REDLOCK_OK && ($status = $this->left($status)) !== \REDLOCK_OK) {
            $this->fail($status);
        }
        $this->depth--;
    }

    public function detach(): string
    {
        $this->refuseWhatIsOver();
        $token = $this->native->token();
        $status = $this->native->detach();
        $status === \REDLOCK_OK || $this->fail($status);
        $this->bodies = 0; /* which have nothing to release any more */
        return $token;
    }

    public function check(): void
    {
        if ($this->refuseWhatIsOver() === \REDLOCK_STATE_ADOPTED) {
            throw self::notHeld($this->resource, 'the token is not confirmed yet: extend() confirms it');
        }
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
        return $this->loss !== null || !\in_array($this->native->state(),
            [\REDLOCK_STATE_HELD, \REDLOCK_STATE_ADOPTED, \REDLOCK_STATE_FREE], true);
    }

    /** @internal It belongs to the parent process. */
    public function isForked(): bool
    {
        return $this->native->state() === \REDLOCK_STATE_FORKED;
    }

    /** @internal It was released or detached. */
    public function hasEnded(): bool
    {
        return $this->native->state() === \REDLOCK_STATE_FREE;
    }

    /** @internal As often as it was acquired. */
    public function isReleased(): bool
    {
        return $this->depth === 0;
    }

    /** @internal */
    public function isOf(?\WeakReference $owner): bool
    {
        return $this->owner === $owner;
    }

    /** @internal If its owner has ended, it is this one's from now on. */
    public function passesTo(?\WeakReference $owner): bool
    {
        $isOver = Driver::isOver($this->owner);
        $isOver && $this->owner = $owner;
        return $isOver;
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

    public function fence(): ?int
    {
        return $this->native->fence() ?: null;
    }

    public function slot(): ?int
    {
        $slot = $this->native->slot();
        return $slot < 0 ? null : $slot;
    }

    public function token(): string
    {
        return $this->native->token();
    }

    public function attempts(): int
    {
        return $this->native->attempts();
    }

    public function votes(): array
    {
        return \array_map(static fn (array $answer): string => $answer['words'], $this->native->answers());
    }

    public function message(): string
    {
        return $this->native->message();
    }

    /** @internal */
    public function adopt(string $token): void
    {
        $status = $this->native->adopt($token);
        $status === \REDLOCK_OK || $this->fail($status);
    }

    /** @internal Sets an option by the name of the table; it counts from the next operation. What it was before. */
    public function set(string $option, string $value): string
    {
        $before = $this->native->get($option);
        $this->native->set($option, $value);
        return $before;
    }

    /** @internal A lost one is over, without waiting: what its keys have left is not to be in the way. */
    public function giveUp(): void
    {
        $this->loss = $this->reason();
        $this->native->abandon();
    }

    /** @internal Takes it once more, with the option reentrant: the status. */
    public function retake(int $waitMs): int
    {
        $status = $this->driver->run($this->native, \REDLOCK_ACQUIRE, $waitMs);
        $this->depth += $status === \REDLOCK_OK ? 1 : 0;
        return $status;
    }

    /** @internal The same around a body. */
    public function again(callable $body): mixed
    {
        $status = $this->retake(-2);
        $status === \REDLOCK_OK || $this->fail($status);
        return $this->around($body);
    }

    /**
     * @internal Calls the body with this hold, and releases it whatever happens, unless the body has done that. What a
     * body has released already it does not take from the bodies around it.
     */
    public function around(callable $body): mixed
    {
        $depth = $before = $this->depth;
        $result = null;
        $hasFailed = true;
        $isReleased = false;
        $this->bodies++;
        try {
            try {
                $result = $this->driver->body($this, $this->native, $body);
                $hasFailed = false;
            } finally {
                $before = $this->depth;
                $isReleased = $before < \min($depth, $this->bodies--) || $this->hasEnded() && $this->loss === null;
                $hasFailed && !$isReleased && $this->releaseAfterFailure();
            }
            $isReleased || $this->releaseAfterSuccess($result);
        } finally { /* of a signal handler that has thrown before the release has begun */
            $isReleased || $this->depth !== $before || $this->isHeld() && $this->releaseAfterFailure();
        }
        $isReleased && $this->bodies > 0 && throw self::carrying($result, self::notHeld($this->resource,
            $this->hasEnded() ? 'this hold of it has ended'
                : 'the body has released it already, and the outer one still holds it'));
        return $result instanceof \Generator ? $this->refuseGenerator($result) : $result;
    }

    /** @internal */
    public function fail(int $status): never
    {
        $status === \REDLOCK_BUSY && $this->driver->run($this->native, \REDLOCK_WHO, self::HOLDER_LIMIT_MS);
        try {
            $this->native->fail($status);
        } catch (BusyException $busy) {
            $busy->heldBy = \json_decode($this->native->heldBy(), true);
            throw $busy;
        } catch (InvalidOptionException $refused) { /* options that do not go together are refused here */
            throw Options::inNames($refused);
        }
    }

    /** @internal */
    public static function notHeld(string $resource, string $words): NotHeldException
    {
        $failure = new NotHeldException("\"$resource\" is not held: $words");
        $failure->resource = $resource;
        return $failure;
    }

    private function setLease(string $method, int $operation, ?int $ttlMs): void
    {
        if ($ttlMs !== null && $ttlMs < 1) {
            throw new \ValueError("$method(): Argument #1 (\$ttlMs) must be null or at least 1, $ttlMs given");
        }
        $this->refuseWhatIsOver();
        $status = $this->driver->run($this->native, $operation, $ttlMs ?? 0);
        $status === \REDLOCK_OK || $this->fail($status);
    }

    /** What a release that did not end well has come to: whether that has given up what was held. */
    private function left(int $status): int
    {
        $status === \REDLOCK_NOT_HELD && $this->refuseWhatIsOver();
        if ($status === \REDLOCK_CANCELLED || $status === \REDLOCK_LOST) {
            $loss = $this->reason();
            if ($status === \REDLOCK_CANCELLED && $loss === '') {
                return \REDLOCK_OK; /* it goes on inside the client */
            }
            [$this->loss, $status] = [$loss, \REDLOCK_LOST];
        }
        return $status;
    }

    private function releaseAfterSuccess(mixed $result): void
    {
        try {
            $this->release();
        } catch (\Throwable $failure) {
            throw self::carrying($result, $failure);
        }
    }

    /** The error of the body leaves as it is, so what the release came to is only logged. */
    private function releaseAfterFailure(): void
    {
        $status = $this->hasEnded() ? \REDLOCK_OK : $this->left($this->driver->run($this->native, \REDLOCK_RELEASE, 0));
        $this->depth--;
        $isTold = $status === \REDLOCK_LOST && $this->loss !== 'closed'; /* the loss is an event by itself */
        $status === \REDLOCK_OK || $isTold || $this->driver->events?->warn('redlock: {message}',
            ['message' => $this->native->message(), 'status' => \redlock_status_name($status)]);
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

    /** The state of what is not over; of what was released, the handle does not know any more whether it was lost. */
    private function refuseWhatIsOver(): int
    {
        $state = $this->native->state();
        $state === \REDLOCK_STATE_LOST && $this->fail(\REDLOCK_LOST);
        if ($state === \REDLOCK_STATE_FORKED) {
            $forked = new ForkedException("\"$this->resource\" is held by the parent process");
            $forked->resource = $this->resource;
            throw $forked;
        }
        if ($this->loss !== null && $state === \REDLOCK_STATE_FREE) {
            $lost = new LostException("\"$this->resource\": this hold of it was lost"
                . ($this->loss === '' ? '' : " ($this->loss)"));
            [$lost->resource, $lost->reason] = [$this->resource, $this->loss];
            throw $lost;
        }
        if ($state === \REDLOCK_STATE_FREE) {
            throw self::notHeld($this->resource, 'this hold of it has ended');
        }
        return $state;
    }

    private function reason(): string
    {
        try {
            $this->native->fail(\REDLOCK_LOST);
        } catch (LostException $lost) {
            return $lost->reason;
        }
    }

    private function refuseGenerator(\Generator $result): never
    {
        $refused = new InvalidOptionException("\"$this->resource\": the body of run() returned a generator, whose code "
            . 'would run after the release: run through it inside the body, or take the lock inside the generator');
        [$refused->resource, $refused->result] = [$this->resource, $result];
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
        throw new \LogicException('a Redlock\Hold can not be serialised: detach() it and adopt() its token elsewhere');
    }
}
