<?php

declare(strict_types=1);

namespace Redlock\Tests;

/** A php-fpm of its own on a unix socket, and the little FastCGI that asks it. */
final class FpmServer
{
    private string $folder;
    /** @var resource */
    private $process;

    public function __construct(string $binary, int $workers, int $maxRequests, int $controlTimeoutS = 0)
    {
        $this->folder = \sys_get_temp_dir() . '/redlock-fpm-' . \bin2hex(\random_bytes(6));
        \mkdir($this->folder);
        \file_put_contents("$this->folder/fpm.conf", <<<INI
            [global]
            error_log = $this->folder/log
            daemonize = no
            process_control_timeout = {$controlTimeoutS}s
            [www]
            listen = $this->folder/socket
            pm = static
            pm.max_children = $workers
            pm.max_requests = $maxRequests
            request_terminate_timeout = 60s
            INI);
        $extension = \getenv('REDLOCK_PHP_EXTENSION');
        $options = $extension === false ? [] : ['-d', "extension=$extension"];
        $command = [$binary, '-R', '-F', '-y', "$this->folder/fpm.conf", ...$options];
        $null = ['file', '/dev/null', 'r'];
        $this->process = \proc_open($command,
            [$null, ['file', "$this->folder/out", 'w'], ['file', "$this->folder/out", 'a']], $pipes);
        try {
            Wait::until($this->listens(...), 'php-fpm to listen');
        } catch (\RuntimeException $e) {
            $this->close();
            throw $e;
        }
    }

    /** Asks for new workers in the place of the old ones, which then hear that they should end. */
    public function reload(): void
    {
        \posix_kill(\proc_get_status($this->process)['pid'], \SIGUSR2);
        Wait::until(fn (): bool => \str_contains((string) \file_get_contents("$this->folder/log"), 'Reloading'),
            'php-fpm to reload');
    }

    /** Runs the code as a request; its output, or null if the worker died. */
    public function request(string $code): ?string
    {
        return self::answer($this->ask($code));
    }

    /** @return resource from which answer() reads */
    public function ask(string $code)
    {
        $script = "$this->folder/" . \md5($code) . '.php';
        \file_put_contents($script, '<?php require ' . \var_export(__DIR__ . '/bootstrap.php', true) . "; $code");
        $socket = \stream_socket_client("unix://$this->folder/socket");
        \stream_set_timeout($socket, 60);
        $parameters = '';
        foreach (['SCRIPT_FILENAME' => $script, 'REQUEST_METHOD' => 'GET',
            'GATEWAY_INTERFACE' => 'CGI/1.1'] as $name => $value) {
            $parameters .= \chr(\strlen($name)) . \pack('N', \strlen($value) | 0x80000000) . $name . $value;
        }
        \fwrite($socket,
            self::record(1, "\0\1\0\0\0\0\0\0") . self::record(4, $parameters) . self::record(4, '')
                . self::record(5, ''));
        return $socket;
    }

    /** @param resource $socket */
    public static function answer($socket): ?string
    {
        $output = '';
        while (\strlen($header = (string) \stream_get_contents($socket, 8)) === 8) {
            ['type' => $type, 'length' => $length,
                'padding' => $padding] = \unpack('Cversion/Ctype/nid/nlength/Cpadding', $header);
            $content = \stream_get_contents($socket, $length + $padding);
            if ($type === 6) {
                $output .= \substr($content, 0, $length);
            } elseif ($type === 3) {
                return \explode("\r\n\r\n", $output, 2)[1] ?? $output;
            }
        }
        return null;
    }

    public function close(): void
    {
        Wait::until(function (): bool {
            \proc_terminate($this->process, \SIGTERM); /* one in the midst of a reload is lost */
            return !\proc_get_status($this->process)['running'];
        }, 'php-fpm to end');
        \proc_close($this->process);
        \array_map(\unlink(...), \glob("$this->folder/*"));
        \rmdir($this->folder);
    }

    /** The socket's file is there from bind() on; only listen(), a little later, lets a connection in. */
    private function listens(): bool
    {
        $socket = @\stream_socket_client("unix://$this->folder/socket");
        return $socket !== false && \fclose($socket);
    }

    private static function record(int $type, string $content): string
    {
        return \pack('CCnnCC', 1, $type, 1, \strlen($content), 0, 0) . $content;
    }
}
