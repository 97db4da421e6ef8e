<?php

declare(strict_types=1);

namespace Redlock\Tests;

final class Node
{
    private const START_TRIES = 5;

    public int $port = 0;
    /** @var resource|null */
    private $process = null;
    /** @var resource|null */
    private $socket = null;
    private int $owner;
    private int $pid;

    public function __construct()
    {
        $this->owner = \getmypid();
        $this->startOn(self::freePort(...));
    }

    /** A port of 127.0.0.1 that was free a moment ago. */
    public static function freePort(): int
    {
        $listener = \stream_socket_server('tcp://127.0.0.1:0');
        $port = (int) \substr(\strrchr(\stream_socket_get_name($listener, false), ':'), 1);
        \fclose($listener);
        return $port;
    }

    public function url(): string
    {
        return "redis://127.0.0.1:$this->port";
    }

    /**
     * Another program may take a port before the server has it: the server ends, and is started again.
     *
     * @param \Closure(): int $port
     */
    private function startOn(\Closure $port): void
    {
        for ($try = 0; $try < self::START_TRIES; $try++) {
            $this->port = $port();
            $this->start();
            Wait::until(fn (): bool => !$this->lives() || $this->answers(), 'redis-server to answer');
            if ($this->lives()) {
                return;
            }
            $this->close();
        }
        throw new \RuntimeException("redis-server does not start, at last on port $this->port");
    }

    private function start(): void
    {
        $command = ['redis-server', '--port', (string) $this->port, '--bind', '127.0.0.1', '--save', '',
            '--daemonize', 'no',
            '--loglevel', 'warning', '--enable-debug-command', 'local'];
        $null = ['file', '/dev/null', 'w'];
        $this->process = \proc_open($command, [['file', '/dev/null', 'r'], $null, $null], $pipes);
        $this->pid = \proc_get_status($this->process)['pid'];
    }

    private function lives(): bool
    {
        return \proc_get_status($this->process)['running'];
    }

    /** A server of somebody else on that port would have another pid. */
    private function answers(): bool
    {
        try {
            return \str_contains($this->command('INFO', 'server'), "\r\nprocess_id:$this->pid\r\n");
        } catch (\RuntimeException) {
            $this->disconnect();
            return false;
        }
    }

    public function isRunning(): bool
    {
        return $this->process !== null;
    }

    public function kill(): void
    {
        \proc_terminate($this->process, \SIGKILL);
        $this->close();
    }

    private function close(): void
    {
        \proc_close($this->process);
        $this->process = null;
        $this->disconnect();
    }

    public function restart(): void
    {
        $this->startOn(fn (): int => $this->port);
    }

    public function stop(): void
    {
        \posix_kill($this->pid, \SIGSTOP);
    }

    public function cont(): void
    {
        if ($this->isRunning()) {
            \posix_kill($this->pid, \SIGCONT);
        }
    }

    public function end(): void
    {
        if ($this->process !== null && $this->owner === \getmypid()) {
            $this->cont();
            $this->kill();
        }
    }

    public function command(string ...$words): mixed
    {
        $socket = $this->connect();
        $request = '*' . \count($words) . "\r\n";
        foreach ($words as $word) {
            $request .= '$' . \strlen($word) . "\r\n$word\r\n";
        }
        \fwrite($socket, $request);
        return $this->read($socket);
    }

    /** @return resource */
    private function connect()
    {
        $this->socket ??= @\stream_socket_client("tcp://127.0.0.1:$this->port", $number, $message, 30)
            ?: throw new \RuntimeException("port $this->port: $message");
        \stream_set_timeout($this->socket, 30);
        return $this->socket;
    }

    private function disconnect(): void
    {
        $this->socket === null || \fclose($this->socket);
        $this->socket = null;
    }

    /** @param resource $socket */
    private function read($socket): mixed
    {
        $line = \fgets($socket);
        if ($line === false) {
            throw new \RuntimeException("port $this->port: no reply");
        }
        $rest = \substr($line, 1, -2);
        return match ($line[0]) {
            '+' => $rest,
            '-' => throw new \RuntimeException($rest),
            ':' => (int) $rest,
            '$' => $rest === '-1' ? null : \substr(\stream_get_contents($socket, (int) $rest + 2), 0, -2),
            '*' => \array_map(fn (): mixed => $this->read($socket), $rest === '0' ? [] : \range(1, (int) $rest)),
        };
    }

    public function __destruct()
    {
        $this->end();
    }
}
