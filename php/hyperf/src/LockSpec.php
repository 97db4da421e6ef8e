<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

use Redlock\Exception\InvalidOptionException;
use Redlock\Options;

/** @internal What one attribute above a method asks for. */
final class LockSpec
{
    /** The only value of onLost. */
    public const CANCEL = 'cancel';

    /**
     * @param string|list<string> $resource templates
     * @param array<string, bool|int|float> $options by the names of the table: what differs from the cluster
     * @param ?list<string> $pools redis pools in place of the cluster
     * @param ?string $fence the parameter that is given the fencing number
     * @param ?string $hold the parameter that is given the hold
     * @param ?\Closure(\Throwable): \Throwable $translate another exception for a refused lock
     * @param ?\Closure(\Closure(): mixed, \Closure(): bool): mixed $repeat makes the call again after a refusal, while
     *     the second closure allows it; the library makes attempts of its own in each
     */
    public function __construct(
        public readonly string|array $resource,
        public readonly array $options = [],
        public readonly string $cluster = 'default',
        public readonly ?array $pools = null,
        public readonly ?string $onBusy = null,
        public readonly ?string $onNoQuorum = null,
        public readonly ?string $onLost = null,
        public readonly ?string $fence = null,
        public readonly ?string $hold = null,
        public readonly ?\Closure $translate = null,
        public readonly ?\Closure $repeat = null,
    ) {
    }

    /** @return list<Template> one for each resource */
    public function templates(string $method): array
    {
        try {
            $resources = Options::resources($this->resource);
        } catch (\TypeError | InvalidOptionException $refused) {
            throw new InvalidOptionException("$method: {$refused->getMessage()}");
        }
        return \array_map(static fn (string $text): Template => new Template($text, $method), $resources);
    }

    /** Where the lock is: two attributes of one place and resource are one lock. */
    public function place(): string
    {
        return $this->pools === null ? "cluster $this->cluster" : 'pools ' . \implode(',', $this->pools);
    }
}
