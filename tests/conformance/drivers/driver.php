<?php

/**
 * The PHP library as a face of the conformance suite:
 *     driver.php [php]               blocking
 *     driver.php fiber               every message in a Fiber of StreamSelectLoop
 *     driver.php revolt AUTOLOAD     every message in a Fiber of Revolt, which the file AUTOLOAD loads
 *     driver.php swoole              every message in a coroutine
 */

declare(strict_types=1);

use Redlock\Client;
use Redlock\Exception\RedlockThrowable;
use Redlock\Lock;
use Redlock\Loop\Loop;
use Redlock\Loop\RevoltLoop;
use Redlock\Tests\StreamSelectLoop;
use Redlock\Verdict;
use Revolt\EventLoop;
use Swoole\Coroutine;
use Swoole\Event;

\ini_set('display_errors', 'stderr');
\spl_autoload_register(static function (string $class): void {
    $path = \strtr(\substr($class, \strlen('Redlock\\')), '\\', '/') . '.php';
    $path = \str_starts_with($path, 'Tests/') ? 'tests' . \substr($path, 5) : "src/$path";
    $file = \dirname(__DIR__, 3) . "/php/lib/$path";
    \is_file($file) && require $file;
});
require \dirname(__DIR__, 3) . '/php/lib/src/extension.php';

final class Malformed extends Exception
{
}

final class BodyFailed extends Exception
{
}

final class Interrupted extends Exception
{
}

class Driver
{
    protected const FACE = 'php';
    protected const CAN = ['lock', 'acquire', 'extend', 'release', 'state', 'validity', 'detach', 'adopt', 'cancel',
        'fork', 'exit', 'exception', 'status', 'describe', 'renew', 'body', 'nul'];

    /** @var array<string, Client> */
    protected array $clients = [];
    /** @var array<string, Lock> */
    protected array $locks = [];
    private int $number = 0;
    private bool $operating = false;

    // -- commands

    protected function hello(array $message): array
    {
        return ['face' => static::FACE, 'version' => \redlock_version(), 'pid' => \getmypid(), 'can' => static::CAN,
            'cancel' => 'signal'];
    }

    protected function client(array $message): array
    {
        $options = self::named(self::listed($message, 'options'));
        $nodes = $options['nodes'] ?? null;
        unset($options['nodes']);
        $this->clients[$message['client']] = $this->connect($nodes, $options);
        return ['status' => 'OK'];
    }

    protected function connect(?string $nodes, array $options): Client
    {
        return Client::connect($nodes, ...$options);
    }

    protected function lock(array $message): array
    {
        $client = $this->known('client', $message);
        $options = self::named(self::listed($message, 'options'));
        $this->locks[$message['lock']] = $client->lock(self::resource($message), ...$options);
        return ['status' => 'OK'];
    }

    protected function adopt(array $message): array
    {
        $options = self::listed($message, 'options');
        $ttlMs = isset($options['ttl_ms']) ? (int) $options['ttl_ms'] : null;
        unset($options['ttl_ms']);
        $lock = $this->known('client', $message)->adopt(self::resource($message), $message['token'], $ttlMs);
        foreach ($options as $name => $value) {
            $lock->set($name, $value);
        }
        $this->locks[$message['lock']] = $lock;
        return ['status' => 'OK'];
    }

    protected function acquire(array $message): array
    {
        return $this->operate($this->known('lock', $message), 'acquire', $message['wait_ms'] ?? -2);
    }

    protected function extend(array $message): array
    {
        return $this->operate($this->known('lock', $message), 'extend', $message['ttl_ms'] ?? 0);
    }

    protected function release(array $message): array
    {
        return $this->operate($this->known('lock', $message), 'release', 0);
    }

    protected function state(array $message): array
    {
        $lock = $this->known('lock', $message);
        $state = $lock->isHeld() ? 'HELD' : ($lock->isLost() ? 'LOST' : 'FREE');
        return ['status' => 'OK', 'state' => $state, 'token' => $lock->token()];
    }

    protected function validity(array $message): array
    {
        $t0 = self::nowMs();
        return ['status' => 'OK', 't0_ms' => $t0, 'validity_ms' => $this->known('lock', $message)->remainingMs()];
    }

    protected function detach(array $message): array
    {
        $lock = $this->known('lock', $message);
        return ['status' => 'OK', 'token' => $lock->detach()] + self::facts($lock, self::nowMs());
    }

    protected function status(array $message): array
    {
        $status = $this->known('client', $message)->status(self::resource($message));
        return ['status' => $status->verdict === Verdict::Unknown ? 'NO_QUORUM' : 'OK',
            'message' => $status->message,
            'verdict' => $status->verdict->value];
    }

    protected function describe(array $message): array
    {
        return ['status' => 'OK', 'describe' => $this->known('client', $message)->describe()];
    }

    protected function fork(array $message): ?array
    {
        $commands = self::listed($message, 'commands');
        [$ours, $theirs] = \stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0);
        $pid = \pcntl_fork();
        if ($pid === 0) {
            $replies = $this->answerAll($commands);
            \fwrite($theirs, \json_encode($replies, \JSON_INVALID_UTF8_SUBSTITUTE));
            \posix_kill(\getmypid(), \SIGKILL); /* gone, without any cleaning up */
        }
        \fclose($theirs);
        $raw = \stream_get_contents($ours);
        \pcntl_waitpid($pid, $how);
        if ($raw === '') {
            throw new Malformed("the child ended with $how and gave no replies");
        }
        return ['status' => 'OK', 'replies' => \json_decode($raw, true)];
    }

    /**
     * In the child.
     *
     * @return list<array>
     */
    protected function answerAll(array $commands): array
    {
        return \array_map($this->answer(...), $commands);
    }

    protected function body(array $message): ?array
    {
        $lock = $this->known('lock', $message);
        $leave = $message;
        try {
            $lock->run(function (Lock $lock) use ($message, &$leave): void {
                $this->send(['status' => 'OK'] + self::facts($lock, self::nowMs()), $message['id']);
                $leave = $this->insideUntilLeave($message['lock']) ?? $message;
                if ($leave['fail'] ?? false) {
                    throw new BodyFailed('as it was told');
                }
            });
            $reply = ['status' => 'OK'];
        } catch (BodyFailed) {
            $reply = ['status' => 'OK', 'raised' => 'BodyFailed'];
        } catch (RedlockThrowable $error) {
            $reply = self::failure($error);
        }
        $this->send($reply, $leave['id']);
        return null;
    }

    protected function insideUntilLeave(string $lock): ?array
    {
        return $this->loop('leave');
    }

    protected function exit(array $message): ?array
    {
        self::oneOf($message, 'mode', 'normal', 'exception', 'hard');
        if ($message['mode'] === 'hard') {
            \posix_kill(\getmypid(), \SIGKILL);
        }
        if ($message['mode'] === 'exception') {
            throw new RuntimeException('the program fails, as it was told');
        }
        exit(0);
    }

    // -- the machinery

    protected static function nowMs(): float
    {
        return \hrtime(true) / 1e6;
    }

    protected static function resource(array $message): string
    {
        $resource = $message['resource'] ?? throw new Malformed('"resource" is missing');
        $hex = \is_array($resource) ? $resource['hex'] ?? null : null;
        $bytes = \is_string($hex) && \preg_match('/^([0-9a-f]{2})*$/iD', $hex) ? \hex2bin($hex) : $resource;
        return \is_string($bytes) ? $bytes : throw new Malformed('"resource" is neither a text nor {"hex": ...}');
    }

    protected static function listed(array $message, string $key): array
    {
        $value = $message[$key] ?? throw new Malformed("\"$key\" is missing");
        return \is_array($value) ? $value : throw new Malformed("\"$key\" is no list");
    }

    protected static function oneOf(array $message, string $key, string ...$allowed): string
    {
        $value = $message[$key] ?? null;
        return \in_array($value, $allowed, true) ? $value
            : throw new Malformed("\"$key\": " . \json_encode($value) . ' is none of ' . \implode(', ', $allowed));
    }

    /** Options by the rule: camelCase, with values of PHP's types. */
    protected static function named(array $options): array
    {
        $named = [];
        foreach ($options as $name => $text) {
            $camel = \lcfirst(\str_replace('_', '', \ucwords($name, '_')));
            $named[$camel] = match (true) {
                $text === 'true', $text === 'false' => $text === 'true',
                \preg_match('/^-?\d{1,18}$/', $text) === 1 => (int) $text,
                \is_numeric($text) => (float) $text,
                default => $text,
            };
        }
        return $named;
    }

    protected static function facts(Lock $lock, float $t0Ms): array
    {
        return ['t0_ms' => $t0Ms, 'validity_ms' => $lock->remainingMs(), 'token' => $lock->token(),
            'votes' => \array_values($lock->votes()), 'message' => $lock->message(), 'fence' => $lock->fence()];
    }

    protected static function failure(Throwable $error): array
    {
        $status = isset($error->status) ? \redlock_status_name($error->status) : 'INVALID';
        $class = \explode('\\', $error::class);
        return ['status' => $status, 'message' => $error->getMessage(), 'error' => \end($class)];
    }

    protected function operate(Lock $lock, string $what, int $arg): array
    {
        $t0Ms = self::nowMs();
        $this->operating = true;
        $status = 'OK';
        try {
            match (true) {
                $what === 'extend' => $lock->extend($arg === 0 ? null : $arg),
                $what === 'release' => $lock->release(),
                $arg === 0 => $status = $lock->tryAcquire() ? 'OK' : 'BUSY',
                default => $lock->acquire($arg === -2 ? null : $arg),
            };
        } catch (Interrupted) {
            return ['status' => 'CANCELLED', 'error' => 'Interrupted'] + self::facts($lock, $t0Ms);
        } catch (RedlockThrowable $error) {
            return self::failure($error) + self::facts($lock, $t0Ms);
        } finally {
            $this->operating = false;
        }
        return ['status' => $status] + self::facts($lock, $t0Ms);
    }

    protected function known(string $kind, array $message): Client|Lock
    {
        $name = $message[$kind] ?? throw new Malformed("\"$kind\" is missing");
        \is_string($name) || throw new Malformed("\"$kind\" is no text");
        $things = $kind === 'client' ? $this->clients : $this->locks;
        return $things[$name] ?? throw new Malformed("there is no $kind \"$name\"");
    }

    protected function answer(array $message): ?array
    {
        $do = $message['do'] ?? '';
        try {
            if (!\in_array($do, $this->commands(), true)) {
                throw new Malformed("there is no command \"$do\"");
            }
            return $this->$do($message);
        } catch (Malformed $error) {
            return ['line' => $this->number, 'malformed' => $error->getMessage()];
        } catch (RedlockThrowable | TypeError | ValueError $error) {
            return self::failure($error);
        }
    }

    /** @return list<string> */
    protected function commands(): array
    {
        return ['hello', 'client', 'lock', 'adopt', 'acquire', 'extend', 'release', 'state', 'validity', 'detach',
            'status', 'describe', 'fork', 'body', 'exit'];
    }

    protected function parse(string $line): ?array
    {
        $this->number++;
        $message = \json_decode($line, true);
        if (!\is_array($message)) {
            $words = \json_last_error() ? \json_last_error_msg() : 'not an object';
            $this->send(['line' => $this->number, 'malformed' => $words], null);
            return null;
        }
        return $message;
    }

    protected function send(array $reply, ?int $id): void
    {
        \fwrite(\STDOUT, \json_encode($reply + ['id' => $id], \JSON_INVALID_UTF8_SUBSTITUTE) . "\n");
    }

    public function run(): void
    {
        \pcntl_async_signals(true);
        \pcntl_signal(\SIGINT, $this->interrupt(...));
        $this->loop();
    }

    /** Messages to the end, or to the one that says $until. */
    private function loop(?string $until = null): ?array
    {
        while (!\feof(\STDIN)) {
            $line = \fgets(\STDIN);
            $message = \is_string($line) ? $this->parse($line) : null;
            if ($message === null) {
                continue;
            }
            if ($until !== null && ($message['do'] ?? '') === $until) {
                return $message;
            }
            $this->reply($message);
        }
        return null;
    }

    protected function reply(array $message): void
    {
        $reply = $this->answer($message);
        if ($reply !== null) {
            $this->send($reply, $message['id'] ?? null);
        }
    }

    /** Ctrl-C ends what waits for a lock and nothing else. */
    private function interrupt(): void
    {
        if ($this->operating) {
            throw new Interrupted();
        }
    }
}

/** A call suspends its caller, so every message is answered in a task of its own: a Fiber or a coroutine. */
abstract class SuspendingDriver extends Driver
{
    protected const CAN = [...parent::CAN, 'start', 'wait'];

    /** @var array<string, mixed> tasks */
    private array $started = [];
    /** @var array<string, array> */
    private array $done = [];
    /** @var array<string, array> */
    private array $leaves = [];
    private string $buffer = '';

    /** Starts a task; returns what giveUp() takes. */
    abstract protected function spawn(Closure $task): mixed;

    abstract protected function giveUp(mixed $task): void;

    abstract protected function delay(int $ms): void;

    protected function hello(array $message): array
    {
        return ['cancel' => 'command'] + parent::hello($message);
    }

    protected function start(array $message): array
    {
        $name = $message['lock'];
        $lock = $this->known('lock', $message);
        $what = self::oneOf($message, 'what', 'acquire', 'extend', 'release');
        unset($this->done[$name]);
        $this->started[$name] = $this->spawn(function () use ($name, $lock, $what, $message): void {
            $this->done[$name] = $this->operate($lock, $what, $message['arg'] ?? 0);
        });
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
        $this->leaves[$message['lock']] = $message;
        return null;
    }

    protected function insideUntilLeave(string $lock): ?array
    {
        while (!isset($this->leaves[$lock])) {
            $this->delay(2);
        }
        $leave = $this->leaves[$lock];
        unset($this->leaves[$lock]);
        return $leave;
    }

    protected function commands(): array
    {
        return [...parent::commands(), 'start', 'wait', 'cancel', 'leave'];
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

    /** A Fiber that nobody keeps is ended, so all are kept until they have ended. */
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

$face = $argv[1] ?? 'php';
if ($face === 'revolt') {
    require $argv[2];
}
$driver = match ($face) {
    'php' => new Driver(),
    'fiber' => new FiberDriver(new StreamSelectLoop()),
    'revolt' => new RevoltDriver(new RevoltLoop()),
    'swoole' => new SwooleDriver(),
};
$driver->run();
