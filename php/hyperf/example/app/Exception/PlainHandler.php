<?php

declare(strict_types=1);

namespace App\Exception;

use Hyperf\Contract\StdoutLoggerInterface;
use Hyperf\ExceptionHandler\ExceptionHandler;
use Hyperf\HttpMessage\Stream\SwooleStream;
use Swow\Psr7\Message\ResponsePlusInterface;

/** An uncaught exception is a 500 with its text. Without a handler Hyperf answers 200 with an empty body. */
class PlainHandler extends ExceptionHandler
{
    public function __construct(private readonly StdoutLoggerInterface $logger)
    {
    }

    public function handle(\Throwable $throwable, ResponsePlusInterface $response): ResponsePlusInterface
    {
        $this->stopPropagation();
        $text = $throwable::class . ': ' . $throwable->getMessage();
        $this->logger->error($text);
        return $response->withStatus(500)->withBody(new SwooleStream($text));
    }

    public function isValid(\Throwable $throwable): bool
    {
        return true;
    }
}
