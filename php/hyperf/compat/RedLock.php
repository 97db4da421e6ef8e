<?php

declare(strict_types=1);

namespace RedlockHyperf;

use Redlock\Exception\BusyException;
use Redlock\Exception\InvalidOptionException;
use Redlock\Exception\NoQuorumException;
use Redlock\Exception\RedlockThrowable;
use Redlock\Exception\TimedOutException;
use Redlock\Hold;
use Redlock\Hyperf\Locks;
use Redlock\Hyperf\LockSpec;
use Redlock\Lock;
use Redlock\LongLease;
use RedlockHyperf\Exception\RedLockException;
use RedlockHyperf\Internal\Attempts;
use RedlockHyperf\Internal\Compatibility;
use RedlockHyperf\Internal\CoroutineSettings;
use RedlockHyperf\Internal\KeptLocks;

/**
 * The object of redlock-hyperf, without its faults. Settings belong to the coroutine that makes them; one that made
 * none uses the first that were made in the object.
 *
 * @deprecated use Redlock\Hyperf\Locks: $locks->lock($resource, ttlMs: $ttl)->run(...)
 */
class RedLock
{
    private readonly CoroutineSettings $settings;

    public function __construct(private readonly Locks $locks)
    {
        $this->settings = new CoroutineSettings();
    }

    /**
     * @deprecated name a cluster in config/autoload/redlock.php
     * @param array<string> $poolName
     * @throws RedLockException config/autoload/redis.php has no such pool
     */
    public function setRedisPoolName(array $poolName = ['default']): RedLock
    {
        if ($poolName !== []) {
            $pools = Compatibility::pools($poolName);
            try {
                $this->locks->checkPools($pools);
            } catch (InvalidOptionException $unknown) {
                throw Compatibility::exception($unknown);
            }
            $this->settings->set('pools', $pools);
        }
        return $this;
    }

    /** @deprecated use the option retryDelayMs */
    public function setRetryDelay(int $retryDelay = 200): RedLock
    {
        $this->settings->set('delay', $retryDelay);
        return $this;
    }

    /** @deprecated use the option retryCount, which counts the attempts after the first one */
    public function setRetryCount(int $retryCount = 2): RedLock
    {
        $this->settings->set('attempts', $retryCount);
        return $this;
    }

    /** @deprecated use the option driftFactor */
    public function setClockDriftFactor(float $clockDriftFactor = 0.01): RedLock
    {
        $this->settings->set('drift', $clockDriftFactor);
        return $this;
    }

    /**
     * A TTL above max_ttl_ms is a lease of max_ttl_ms that is renewed until the TTL or the process has ended.
     *
     * @deprecated use Redlock\Lock::acquire()
     * @param string $resource
     * @return array{validity: float, resource: string, token: string}|false validity in ms; false: not granted
     */
    public function lock($resource, int $ttl)
    {
        $resource = self::text($resource);
        $attempts = new Attempts($this->settings->get('attempts', 2), $this->settings->get('delay', 200));
        try {
            $client = $this->locks->clientOf($this->spec($resource));
            $lock = $this->handle($resource,
                LongLease::options($client, $ttl) + ['drift_factor' => $this->settings->get('drift', 0.01)]);
            $hold = $attempts->make(static fn (): Hold => $lock->acquire(0));
        } catch (BusyException | NoQuorumException | TimedOutException) {
            return false;
        } catch (RedlockThrowable $failure) {
            throw Compatibility::exception($failure);
        }
        KeptLocks::of($this->locks)->add($hold);
        $this->locks->leaveAtEnd($hold, new LongLease($client, $ttl));
        return ['validity' => (float) $hold->remainingMs(), 'resource' => $resource, 'token' => $hold->token()];
    }

    /**
     * @deprecated use Redlock\Hold::release()
     * @param array{resource: string, token: string} $lock as lock() returned it, also in another process
     * @return bool it was still held
     */
    public function unlock(array $lock)
    {
        if (!\is_string($lock['resource'] ?? null) || !\is_string($lock['token'] ?? null)) {
            throw new RedLockException('unlock() takes what lock() returned, an array with "resource" and "token": '
                . \json_encode($lock, \JSON_PARTIAL_OUTPUT_ON_ERROR));
        }
        try {
            $kept = KeptLocks::of($this->locks)->take($lock['token']);
            ($kept ?? $this->handle($lock['resource'], [])->adopt($lock['token']))->release();
            return true;
        } catch (InvalidOptionException $wrong) {
            throw Compatibility::exception($wrong);
        } catch (RedlockThrowable) {
            return false;
        }
    }

    /** The parameter had no type: whatever is a text was taken. */
    private static function text(mixed $resource): string
    {
        if (!\is_scalar($resource) && !$resource instanceof \Stringable) {
            throw new RedLockException('resource must be a text, ' . \get_debug_type($resource) . ' given');
        }
        return (string) $resource;
    }

    /** @param array<string, bool|int|float> $options by the names of the table */
    private function handle(string $resource, array $options): Lock
    {
        return $this->locks->lockFor($this->spec($resource, $options), $resource);
    }

    /** @param array<string, bool|int|float> $options by the names of the table */
    private function spec(string $resource, array $options = []): LockSpec
    {
        return new LockSpec($resource, $options, pools: $this->settings->get('pools', null));
    }
}
