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
use Redlock\Exception\ForkedException;
use Redlock\Exception\NotHeldException;
use Redlock\Exception\RedlockThrowable;
use Redlock\Hold;
use Redlock\Lock;
use Redlock\Loop\RevoltLoop;
use Redlock\Tests\StreamSelectLoop;
use Redlock\Verdict;

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

/** What the suite calls a lock: the holds of one holder, one after the other. */
class Holder
{
    /** Of the last call, if it was refused. */
    public ?RedlockThrowable $refusal = null;
    private bool $isOver = false;

    public function __construct(public readonly Lock $lock, protected ?Hold $hold = null)
    {
    }

    /** What acquires, or tries to. */
    public function take(int $waitMs): string
    {
        $hold = $waitMs === 0 ? $this->lock->tryAcquire() : $this->lock->acquire($waitMs === -2 ? null : $waitMs);
        if ($hold === false) {
            $this->refusal = $this->lock->refused();
            return 'BUSY';
        }
        $this->hold = $hold;
        $this->isOver = false;
        return 'OK';
    }

    public function run(Closure $body): void
    {
        $this->lock->run(function (Hold $hold) use ($body): void {
            [$this->hold, $this->isOver] = [$hold, false];
            $body();
        });
    }

    /** The hold until its release; then the lock, which refuses. */
    public function acting(): Hold|Lock
    {
        return $this->isOver || $this->hold === null ? $this->lock : $this->hold;
    }

    public function letGo(): void
    {
        $this->isOver = $this->hold?->hasEnded() ?? false;
    }

    public function state(): string
    {
        try {
            $this->isOver || $this->hold?->check();
        } catch (ForkedException) {
            return 'FREE'; /* the parent's */
        } catch (RedlockThrowable) {
            return $this->hold->isLost() ? 'LOST' : 'FREE';
        }
        return $this->hold?->isHeld() ? 'HELD' : 'FREE';
    }

    public function remainingMs(): int
    {
        return $this->hold?->remainingMs() ?? 0;
    }

    public function facts(float $t0Ms): array
    {
        return ['t0_ms' => $t0Ms, 'validity_ms' => $this->remainingMs(), 'token' => $this->hold?->token() ?? '',
            'votes' => \array_values($this->refusal?->votes() ?? $this->hold?->votes() ?? []),
            'message' => $this->refusal?->getMessage() ?? $this->hold?->message() ?? '',
            'fence' => $this->hold?->fence(), 'slot' => $this->hold?->slot()];
    }
}

/** One of those that share a lock object: a Fiber or coroutine, which speaks of its hold by the object's methods. */
final class Caller extends Holder
{
    public function acting(): Hold|Lock
    {
        return $this->lock;
    }

    public function letGo(): void
    {
    }

    public function state(): string
    {
        return $this->lock->isHeld() ? 'HELD' : ($this->lock->isLost() ? 'LOST' : 'FREE');
    }

    public function remainingMs(): int
    {
        return $this->lock->remainingMs();
    }

    public function facts(float $t0Ms): array
    {
        try {
            $own = ['token' => $this->lock->token(), 'votes' => \array_values($this->lock->votes()),
                'message' => $this->lock->message(), 'fence' => $this->lock->fence(), 'slot' => $this->lock->slot()];
        } catch (NotHeldException) {
            $own = [];
        }
        return ['t0_ms' => $t0Ms, 'validity_ms' => $this->remainingMs()] + $own + parent::facts($t0Ms);
    }
}

class Driver
{
    protected const FACE = 'php';
    protected const CAN = ['lock', 'acquire', 'extend', 'release', 'state', 'validity', 'detach', 'adopt', 'cancel',
        'fork', 'exit', 'exception', 'status', 'describe', 'renew', 'body', 'nul', 'reentrant', 'close'];

    /** @var array<string, Client> */
    protected array $clients = [];
    /** @var array<string, Holder> */
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
        $this->locks[$message['lock']] = new Holder($client->lock(self::resources($message), ...$options));
        return ['status' => 'OK'];
    }

    protected function adopt(array $message): array
    {
        $options = self::named(self::listed($message, 'options'));
        $client = $this->known('client', $message);
        $this->locks[$message['lock']] = new Holder($client->lock(self::resources($message), ...$options),
            $client->adopt(self::resources($message), $message['token'], ...$options));
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
        return ['status' => 'OK', 'state' => $lock->state(), 'token' => $lock->facts(0)['token']];
    }

    protected function validity(array $message): array
    {
        $t0 = self::nowMs();
        return ['status' => 'OK', 't0_ms' => $t0, 'validity_ms' => $this->known('lock', $message)->remainingMs()];
    }

    protected function detach(array $message): array
    {
        $lock = $this->known('lock', $message);
        $token = $lock->acting()->detach();
        $lock->letGo();
        return ['status' => 'OK', 'token' => $token] + $lock->facts(self::nowMs());
    }

    protected function close(array $message): array
    {
        $this->known('client', $message)->drain();
        return ['status' => 'OK'];
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
            $lock->run(function () use ($lock, $message, &$leave): void {
                $this->send(['status' => 'OK'] + $lock->facts(self::nowMs()), $message['id']);
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

    /** The scoped form once more; its body releases the lock before its end. */
    protected function again(array $message): ?array
    {
        try {
            $this->known('lock', $message)->lock->run(static fn (Hold $hold) => $hold->release());
            return ['status' => 'OK'];
        } catch (RedlockThrowable $error) {
            return self::failure($error);
        }
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

    /** One, or the list of those of a lock. */
    protected static function resources(array $message): string|array
    {
        $several = $message['resource'] ?? null;
        return \is_array($several) && \array_is_list($several)
            ? \array_map(static fn (mixed $one): string => self::resource(['resource' => $one]), $several)
            : self::resource($message);
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

    protected static function failure(Throwable $error): array
    {
        $status = isset($error->status) ? \redlock_status_name($error->status) : 'INVALID';
        $class = \explode('\\', $error::class);
        return ['status' => $status, 'message' => $error->getMessage(), 'error' => \end($class)];
    }

    protected function operate(Holder $lock, string $what, int $arg): array
    {
        $t0Ms = self::nowMs();
        $this->operating = true;
        $lock->refusal = null;
        $status = 'OK';
        try {
            match ($what) {
                'extend' => $lock->acting()->extend($arg === 0 ? null : $arg),
                'release' => $lock->acting()->release(),
                default => $status = $lock->take($arg),
            };
        } catch (Interrupted) {
            return ['status' => 'CANCELLED', 'error' => 'Interrupted'] + $lock->facts($t0Ms);
        } catch (RedlockThrowable $error) {
            $lock->refusal = $error;
            return self::failure($error) + $lock->facts($t0Ms);
        } finally {
            $this->operating = false;
            $what === 'release' && $lock->letGo();
        }
        return ['status' => $status] + $lock->facts($t0Ms);
    }

    protected function known(string $kind, array $message): Client|Holder
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
            'status', 'describe', 'fork', 'body', 'again', 'exit', 'close'];
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

require __DIR__ . '/driver_suspending.php';

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
