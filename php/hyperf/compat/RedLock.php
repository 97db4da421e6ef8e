<?php

declare(strict_types=1);

namespace RedlockHyperf;

use Redlock\Exception\BusyException;
use Redlock\Exception\InvalidOptionException;
use Redlock\Exception\NoQuorumException;
use Redlock\Exception\RedlockThrowable;
use Redlock\Exception\TimedOutException;
use Redlock\Hyperf\Attempts;
use Redlock\Hyperf\Compatibility;
use Redlock\Hyperf\CoroutineSettings;
use Redlock\Hyperf\LockSpec;
use Redlock\Hyperf\Locks;
use Redlock\Lock;
use RedlockHyperf\Exception\RedLockException;

/**
 * The object of redlock-hyperf, without its faults. Settings belong to the coroutine that makes them; one that made
 * none uses the first that were made in the process.
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
     * @param list<string> $poolName
     */
    public function setRedisPoolName(array $poolName = ['default']): static
    {
        if ($poolName !== []) {
            $this->settings->set('pools', \array_values($poolName));
        }
        return $this;
    }

    /** @deprecated use the option retryDelayMs */
    public function setRetryDelay(int $retryDelay = 200): static
    {
        $this->settings->set('delay', $retryDelay);
        return $this;
    }

    /** @deprecated use the option retryCount, which counts the attempts after the first one */
    public function setRetryCount(int $retryCount = 2): static
    {
        $this->settings->set('attempts', $retryCount);
        return $this;
    }

    /** @deprecated use the option driftFactor */
    public function setClockDriftFactor(float $clockDriftFactor = 0.01): static
    {
        $this->settings->set('drift', $clockDriftFactor);
        return $this;
    }

    /**
     * @deprecated use Redlock\Lock::acquire()
     * @return array{validity: int, resource: string, token: string}|false false: not granted
     */
    public function lock(string $resource, int $ttl): array|false
    {
        $options = ['ttl_ms' => $ttl, 'drift_factor' => $this->settings->get('drift', 0.01)];
        $spec = new LockSpec($resource, $options, pools: $this->settings->get('pools', null));
        $attempts = new Attempts($this->settings->get('attempts', 2), $this->settings->get('delay', 200));
        try {
            $client = $spec->client($this->locks);
            $lock = $this->locks->lockOf($client, $resource, $spec->optionsFor($client));
            $attempts->make(static fn () => $lock->acquire(0));
        } catch (BusyException | NoQuorumException | TimedOutException) {
            return false;
        } catch (RedlockThrowable $failure) {
            throw Compatibility::exception($failure);
        }
        $this->locks->keep($lock);
        return ['validity' => $lock->remainingMs(), 'resource' => $resource, 'token' => $lock->token()];
    }

    /**
     * @deprecated use Redlock\Lock::release()
     * @param array{resource: string, token: string} $lock as lock() returned it
     * @return bool it was still held
     */
    public function unlock(array $lock): bool
    {
        try {
            ($this->locks->take($lock['token']) ?? $this->adopt($lock))->release();
            return true;
        } catch (InvalidOptionException $wrong) {
            throw Compatibility::exception($wrong);
        } catch (RedlockThrowable) {
            return false;
        } finally {
            $this->locks->closeIfIdle();
        }
    }

    /** @param array{resource: string, token: string} $lock */
    private function adopt(array $lock): Lock
    {
        $spec = new LockSpec($lock['resource'], pools: $this->settings->get('pools', null));
        return $spec->client($this->locks)->adopt($lock['resource'], $lock['token']);
    }
}
