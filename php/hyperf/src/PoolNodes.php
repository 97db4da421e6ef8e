<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

use Redlock\Exception\InvalidOptionException;

/** @internal Nodes that are given as names of Hyperf redis pools. */
final class PoolNodes
{
    private const OPT_PREFIX = 2; /* \Redis::OPT_PREFIX, which needs ext-redis */

    /**
     * @param array<string, mixed> $config of a cluster
     * @param array<string, array<string, mixed>> $pools
     * @return array<string, mixed> the same with URLs as nodes
     */
    public static function resolve(#[\SensitiveParameter] array $config, #[\SensitiveParameter] array $pools): array
    {
        $urls = $prefixes = [];
        $isGiven = static fn ($node): bool => $node !== ''; /* what explode() makes of an empty variable */
        foreach (\array_filter((array) ($config['nodes'] ?? []), $isGiven) as $node) {
            \is_string($node) || throw new InvalidOptionException('a node in config/autoload/redlock.php is '
                . \get_debug_type($node) . '; allowed: a URL (redis://host:port), or the name of a redis pool');
            if (!\str_contains($node, '://')) {
                [$urls[], $prefixes[$node]] = self::pool($node, $pools);
            } else {
                $urls[] = $node;
            }
        }
        if (\count(\array_unique($prefixes)) > 1) {
            throw new InvalidOptionException('the redis pools have different key prefixes (' . \json_encode($prefixes)
                . '): the nodes of a cluster must use one key');
        }
        $config['nodes'] = $urls === [] ? null : $urls;
        if ((\array_values($prefixes)[0] ?? '') !== '') {
            $config += ['key_prefix' => \array_values($prefixes)[0]];
        }
        return $config;
    }

    /**
     * @param array<string, array<string, mixed>> $pools
     * @return array{string, string} URL and key prefix
     */
    private static function pool(string $name, #[\SensitiveParameter] array $pools): array
    {
        $pools = \array_filter($pools, \is_array(...));
        $pool = $pools[$name]
            ?? throw new InvalidOptionException("there is no redis pool \"$name\" in config/autoload/redis.php; "
            . 'a node is a URL (redis://host:port) or one of: ' . (\implode(', ', \array_keys($pools)) ?: 'none'));
        foreach (['cluster' => 'a Redis Cluster', 'sentinel' => 'a sentinel set'] as $kind => $words) {
            if (!empty($pool[$kind]['enable'])) {
                throw new InvalidOptionException(
                    "the redis pool \"$name\" is $words: Redlock needs independent single servers");
            }
        }
        $prefix = $pool['options']['prefix'] ?? $pool['options'][self::OPT_PREFIX] ?? '';
        foreach (['host', 'port', 'db', 'prefix'] as $part) {
            $value = $part === 'prefix' ? $prefix : $pool[$part] ?? '';
            \is_scalar($value) || throw new InvalidOptionException("the $part of the redis pool \"$name\" is "
                . \get_debug_type($value) . '; allowed: a text or a number');
        }
        return [self::url($pool), (string) $prefix];
    }

    /** @param array<string, mixed> $pool */
    private static function url(#[\SensitiveParameter] array $pool): string
    {
        $auth = \array_values(
            \array_filter((array) ($pool['auth'] ?? []), static fn ($part): bool => (string) $part !== ''));
        $password = \rawurlencode((string) \end($auth));
        $user = \count($auth) > 1 ? \rawurlencode((string) $auth[0]) : '';
        $credentials = $auth === [] ? '' : "$user:$password@";
        $host = (string) ($pool['host'] ?? 'localhost');
        $database = (int) ($pool['db'] ?? 0);
        if (\str_starts_with($host, '/')) {
            return "unix://$credentials$host?db=$database";
        }
        $scheme = 'redis';
        if (\preg_match('#^(tls|ssl)://#', $host)) {
            $scheme = 'rediss';
            $host = \substr($host, 6);
        }
        $host = \str_contains($host, ':') ? '[' . \trim($host, '[]') . ']' : $host;
        return "$scheme://$credentials$host:" . (int) ($pool['port'] ?? 6379) . "/$database";
    }
}
