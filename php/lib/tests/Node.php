<?php

declare(strict_types=1);

namespace Redlock\Tests;

final class Node
{
    public readonly int $port;
    /** @var resource bound, not listening: nobody who asks for a free port gets this one, even if the node is down */
    private $reservation;
    /** @var resource|null */
    private $process = null;
    /** @var resource|null */
    private $socket = null;
    private int $owner;
    private int $pid;

    public function __construct()
    {
        $this->owner = \getmypid();
        $this->reservation = \stream_socket_server('tcp://127.0.0.1:0', $number, $message, \STREAM_SERVER_BIND);
        $this->port = (int) \substr(\strrchr(\stream_socket_get_name($this->reservation, false), ':'), 1);
        $this->restart();
    }

    public function url(): string
    {
        return "redis://127.0.0.1:$this->port";
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

    public function pid(): int
    {
        return $this->pid;
    }

    public function isRunning(): bool
    {
        return $this->process !== null;
    }

    public function kill(): void
    {
        \proc_terminate($this->process, \SIGKILL);
        \proc_close($this->process);
        $this->process = null;
        $this->disconnect();
    }

    public function restart(): void
    {
        $this->start();
        Wait::until($this->answers(...), 'redis-server to answer');
    }

    public function stop(): void
    {
        \posix_kill($this->pid, \SIGSTOP);
        Wait::until($this->isStopped(...), 'the node to stop');
    }

    private function isStopped(): bool
    {
        return \str_contains(\file_get_contents("/proc/$this->pid/stat"), ') T ');
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
