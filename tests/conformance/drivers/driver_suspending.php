<?php

/** The faces of driver.php in which a call suspends its caller. */

declare(strict_types=1);

use Redlock\Client;
use Redlock\Loop\Loop;
use Revolt\EventLoop;
use Swoole\Coroutine;
use Swoole\Event;

/** A call suspends its caller, so every message is answered in a task of its own: a Fiber or a coroutine. */
abstract class SuspendingDriver extends Driver
{
    protected const CAN = [...parent::CAN, 'start', 'wait', 'sharing'];

    /** @var array<string, mixed> tasks */
    private array $started = [];
    /** @var array<string, array> */
    private array $done = [];
    /** @var array<string, list<array>> messages for whoever is in a body */
    private array $inside = [];
    private string $buffer = '';
    /** @var array<string, ArrayObject<int, Closure>> what a caller has to do */
    private array $callers = [];

    /** Starts a task; returns what giveUp() takes. */
    abstract protected function spawn(Closure $task): mixed;

    abstract protected function giveUp(mixed $task): void;

    abstract protected function delay(int $ms): void;

    protected function hello(array $message): array
    {
        return ['cancel' => 'command'] + parent::hello($message);
    }

    protected function caller(array $message): array
    {
        $this->locks[$message['caller']] = new Caller($this->known('lock', $message)->lock);
        $jobs = $this->callers[$message['caller']] = new ArrayObject();
        $this->spawn(function () use ($jobs): void {
            for (;; $this->delay(2)) {
                foreach ($jobs->exchangeArray([]) as $job) {
                    $job();
                }
            }
        });
        return ['status' => 'OK'];
    }

    /** A caller has a Fiber or coroutine of its own for all of its messages. */
    protected function answer(array $message): ?array
    {
        $name = $message['lock'] ?? null;
        $jobs = \is_string($name) ? $this->callers[$name] ?? null : null;
        if ($jobs === null || \in_array($message['do'], ['start', 'wait', 'cancel'], true)) {
            return parent::answer($message);
        }
        $reply = null;
        $jobs[] = function () use ($message, &$reply): void {
            $reply = parent::answer($message);
        };
        while ($reply === null) {
            $this->delay(2);
        }
        return $reply;
    }

    protected function start(array $message): array
    {
        $name = $message['lock'];
        $lock = $this->known('lock', $message);
        $what = self::oneOf($message, 'what', 'acquire', 'extend', 'release');
        unset($this->done[$name]);
        $task = function () use ($name, $lock, $what, $message): void {
            $this->done[$name] = $this->operate($lock, $what, $message['arg'] ?? 0);
        };
        if (isset($this->callers[$name])) {
            $this->callers[$name][] = $task;
        } else {
            $this->started[$name] = $this->spawn($task);
        }
        return ['status' => 'OK'];
    }

    protected function wait(array $message): array
    {
        $limitMs = $message['limit_ms'] ?? -1;
        $end = $limitMs < 0 ? \INF : self::nowMs() + $limitMs;
        while (!isset($this->done[$message['lock']]) && self::nowMs() < $end) {
            $this->delay(2);
        }
        return $this->done[$message['lock']] ?? ['status' => 'PENDING'];
    }

    protected function cancel(array $message): array
    {
        if (!isset($this->done[$message['lock']])) {
            $this->giveUp($this->started[$message['lock']] ?? throw new Malformed('nothing was started on this lock'));
        }
        return ['status' => 'OK'];
    }

    protected function leave(array $message): ?array
    {
        $this->inside[$message['lock']][] = $message;
        return null;
    }

    /** By the Fiber or coroutine of the body, if there is one. */
    protected function again(array $message): ?array
    {
        return isset($this->inside[$message['lock']]) ? $this->leave($message) : parent::again($message);
    }

    protected function insideUntilLeave(string $lock): ?array
    {
        $this->inside[$lock] = [];
        while ((($message = \array_shift($this->inside[$lock]))['do'] ?? '') !== 'leave') {
            $message === null ? $this->delay(2) : $this->send(parent::again($message), $message['id']);
        }
        unset($this->inside[$lock]);
        return $message;
    }

    protected function commands(): array
    {
        return [...parent::commands(), 'start', 'wait', 'cancel', 'leave', 'caller'];
    }

    /** Takes what there is to read. */
    protected function take(): void
    {
        $lines = \explode("\n", $this->buffer . \fread(\STDIN, 65536));
        $this->buffer = \array_pop($lines);
        foreach ($lines as $line) {
            $message = $this->parse($line);
            if ($message !== null) {
                $this->spawn(fn () => $this->reply($message));
            }
        }
    }
}

class FiberDriver extends SuspendingDriver
{
    protected const FACE = 'fiber';

    private mixed $input = null;
    /** @var list<Fiber> */
    private array $fibers = [];

    public function __construct(protected readonly Loop $events)
    {
    }

    protected function connect(?string $nodes, array $options): Client
    {
        return Client::connect($nodes, null, $this->events, ...$options);
    }

    /** An unreferenced Fiber is ended, so all are kept until they have ended. */
    protected function spawn(Closure $task): mixed
    {
        $this->fibers = \array_filter($this->fibers, static fn (Fiber $fiber): bool => !$fiber->isTerminated());
        $fiber = $this->fibers[] = new Fiber($task);
        $fiber->start();
        return $fiber;
    }

    protected function giveUp(mixed $task): void
    {
        $task->throw(new Interrupted());
    }

    protected function delay(int $ms): void
    {
        $this->events->delay($ms);
    }

    /** The child goes on in its copy of the loop, and leaves the parent's input alone. */
    protected function answerAll(array $commands): array
    {
        $this->events->unwatch($this->input);
        return parent::answerAll($commands);
    }

    public function run(): void
    {
        $this->events->run([$this->read(...)]);
    }

    protected function read(): void
    {
        \stream_set_blocking(\STDIN, false);
        $suspension = $this->events->suspension();
        $this->input = $this->events->watch(\STDIN, $suspension->resume(...));
        while (!\feof(\STDIN)) {
            $suspension->suspend();
            $this->take();
        }
        $this->events->unwatch($this->input);
    }
}

final class RevoltDriver extends FiberDriver
{
    protected const FACE = 'revolt';

    /** Revolt can throw only into a suspension, and a Fiber's suspension is had inside of it. */
    protected function spawn(Closure $task): mixed
    {
        $handle = new stdClass();
        parent::spawn(static function () use ($task, $handle): void {
            $handle->suspension = EventLoop::getSuspension();
            $task();
        });
        return $handle;
    }

    protected function giveUp(mixed $task): void
    {
        $task->suspension->throw(new Interrupted());
    }

    protected function delay(int $ms): void
    {
        $suspension = EventLoop::getSuspension();
        EventLoop::delay($ms / 1000, static fn () => $suspension->resume());
        $suspension->suspend();
    }

    /** The end of the input ends the program, whatever still waits. */
    public function run(): void
    {
        EventLoop::queue(function (): void {
            $this->read();
            EventLoop::getDriver()->stop();
        });
        EventLoop::run();
    }
}

final class SwooleDriver extends SuspendingDriver
{
    protected const FACE = 'swoole';

    private ?array $fork = null;

    protected function spawn(Closure $task): mixed
    {
        return Coroutine::create($task);
    }

    protected function giveUp(mixed $task): void
    {
        Coroutine::cancel($task);
    }

    protected function delay(int $ms): void
    {
        Coroutine::sleep($ms / 1000);
    }

    /** Swoole refuses it inside a coroutine: run() does it when all of them have ended. */
    protected function fork(array $message): ?array
    {
        if (Coroutine::getCid() > 0) {
            self::listed($message, 'commands');
            $this->fork = $message;
            return null;
        }
        return parent::fork($message);
    }

    protected function answerAll(array $commands): array
    {
        Coroutine\run(function () use ($commands, &$replies): void {
            $replies = parent::answerAll($commands);
        });
        return $replies;
    }

    /** Without Swoole's hooks: a reply is written at once, and the library needs none. */
    public function run(): void
    {
        Coroutine::set(['hook_flags' => 0, 'enable_deadlock_check' => false]);
        \stream_set_blocking(\STDIN, false);
        while (!\feof(\STDIN)) {
            Coroutine\run($this->read(...));
            if ($this->fork !== null) {
                [$message, $this->fork] = [$this->fork, null];
                $this->reply($message);
            }
        }
    }

    /** The end of the input ends the program, whatever still waits. */
    private function read(): void
    {
        while (!\feof(\STDIN) && $this->fork === null) {
            Coroutine\System::waitEvent(\STDIN, \SWOOLE_EVENT_READ);
            $this->take();
        }
        $this->fork === null && Event::exit();
    }
}
