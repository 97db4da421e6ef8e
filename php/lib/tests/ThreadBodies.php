<?php

declare(strict_types=1);

namespace Redlock\Tests;

use parallel\Channel;
use Redlock\Client;

/** What the threads of ThreadTest do. Each loads this class by itself: threads have no PHPUnit. */
final class ThreadBodies
{
    /** All that is passed to a thread as code: it calls one of the methods below. */
    public static function caller(): \Closure
    {
        return static fn (string $body, array $arguments): mixed => ThreadBodies::$body(...$arguments);
    }

    /** Adds to the number in a file, which only a lock makes safe. */
    public static function count(array $config, string $file, int $times): void
    {
        $client = Client::fromArray($config);
        for ($i = 0; $i < $times; $i++) {
            $client->lock('counter')->run(static function () use ($file): void {
                $seen = (int) \file_get_contents($file);
                \usleep(200);
                \file_put_contents($file, (string) ($seen + 1));
            });
        }
    }

    /** Takes locks in many Fibers at the same time; returns how many it had. */
    public static function holdInFibers(array $config, int $turns, int $fibers): int
    {
        $loop = new StreamSelectLoop();
        $client = Client::fromArray($config, loop: $loop);
        $thread = \bin2hex(\random_bytes(4));
        $held = 0;
        for ($turn = 0; $turn < $turns; $turn++) {
            $tasks = [];
            for ($i = 0; $i < $fibers; $i++) {
                $lock = $client->lock("$thread:$i");
                $tasks[] = static fn (): int => $lock->run(static fn (): int => (int) $lock->isHeld());
            }
            $held += \array_sum($loop->run($tasks));
        }
        return $held;
    }

    public static function drain(array $config): bool
    {
        $client = Client::fromArray($config);
        $lock = $client->lock(\bin2hex(\random_bytes(4)));
        $lock->acquire();
        return $client->drain() && !$lock->isHeld();
    }

    /** Takes a lock that the thread keeps to its end. */
    public static function keep(array $config): bool
    {
        $GLOBALS['lock'] = Client::fromArray($config)->lock('kept', renew: true);
        return $GLOBALS['lock']->tryAcquire() !== false;
    }

    /** Holds a lock until asked to end; returns whether it still had it then. */
    public static function hold(array $config, Channel $ready, Channel $end): bool
    {
        $lock = Client::fromArray($config)->lock('thread');
        $lock->acquire();
        $ready->send(true);
        $end->recv();
        $held = $lock->isHeld();
        $lock->release();
        return $held;
    }

    public static function take(Client $client): bool
    {
        return $client->lock('x')->tryAcquire() !== false;
    }
}
