<?php

declare(strict_types=1);

namespace Redlock;

use Redlock\Exception\InvalidOptionException;

/**
 * Options as named arguments are camelCase (retryDelayMs); the extension and configuration files use the names of the
 * one option table (retry_delay_ms).
 *
 * @internal
 */
final class Options
{
    /** @var array<string, string> name in PHP => name in the table */
    private static array $names = [];

    /** @var array<string, true> names in the table of those that a lock may have */
    private static array $ofLocks = [];

    /**
     * @param array<int|string, mixed> $named as a variadic parameter collects them
     * @return array<string, mixed>
     */
    public static function fromNamed(array $named): array
    {
        if ($named === []) {
            return [];
        }
        $options = [];
        foreach ($named as $name => $value) {
            if (\is_int($name)) {
                throw new \ArgumentCountError('options are named arguments, as in ttlMs: 10000');
            }
            $options[self::names()[$name] ?? throw self::unknown($name)] = $value;
        }
        return $options;
    }

    /**
     * Options of an array, a configuration file or a DSN: without "_ms" a time is a text with a unit, so that
     * 'ttl' => '10s' is 'ttl_ms' => 10000.
     *
     * @param array<string, mixed> $options
     * @return array<string, mixed> by the names of the table
     */
    public static function fromArray(#[\SensitiveParameter] array $options): array
    {
        foreach ($options as $name => $value) {
            $inTable = "{$name}_ms";
            if (!\in_array($inTable, self::names(), true)) {
                continue;
            }
            if (\array_key_exists($inTable, $options)) {
                throw self::refused('', $name, ' and ', $inTable, ' are one option: give one of them');
            }
            unset($options[$name]);
            $options[$inTable] = self::ms($name, $value);
        }
        return $options;
    }

    private static function ms(string $name, mixed $value): int|string
    {
        if (\in_array($value, ['0', '-1', 'auto'], true)) {
            return $value;
        }
        if (\is_string($value) && \preg_match('/^(\d{1,12}(?:\.\d{1,9})?)(ms|s|m|h)$/D', $value, $match) === 1) {
            $ms = $match[1] * ['ms' => 1, 's' => 1000, 'm' => 60_000, 'h' => 3_600_000][$match[2]];
            if (\abs($ms - \round($ms)) < 1e-6) {
                return (int) \round($ms);
            }
        }
        $given = \is_scalar($value) ? \json_encode($value) : \get_debug_type($value);
        return $value === 'forever' ? -1 : throw self::refused('', $name,
            " is $given; allowed: durations such as 500ms, 30s, 2m, 1h, or ", "{$name}_ms", ' in milliseconds');
    }

    private static function refused(string ...$parts): InvalidOptionException
    {
        $refused = new InvalidOptionException(\implode('', $parts));
        $refused->parts = $parts;
        return $refused;
    }

    /**
     * The resources of one lock.
     *
     * @param string|array<mixed> $resource
     * @return non-empty-list<string>
     */
    public static function resources(string|array $resource): array
    {
        foreach ((array) $resource as $one) {
            if (!\is_string($one)) {
                throw new \TypeError('a resource is ' . \get_debug_type($one) . '; allowed: strings');
            }
        }
        return \array_values((array) $resource)
            ?: throw new InvalidOptionException('there are 0 resources; allowed: 1 to 100');
    }

    /**
     * The options among the parameters of a call.
     *
     * @param array<string, mixed> $parameters by name; null is not given
     * @param array<int|string, mixed> $unknown what the call has besides
     * @return array<string, mixed> by the names of the table
     */
    public static function given(#[\SensitiveParameter] array $parameters, #[\SensitiveParameter] array $unknown): array
    {
        $options = self::fromNamed($unknown);
        foreach (self::names() as $name => $inTable) {
            if (isset($parameters[$name]) && $inTable !== 'nodes') {
                $options[$inTable] = $parameters[$name];
            }
        }
        return $options;
    }

    /**
     * @param array<string, mixed> $options by the names of the table
     * @return array<string, mixed> the same as defaults: locks that are shared have no number
     */
    public static function ofClient(#[\SensitiveParameter] array $options): array
    {
        return self::isTrue($options['shared'] ?? false) ? \array_diff_key($options, ['fence' => true]) : $options;
    }

    /**
     * Those that are defaults of locks: they belong to the PHP object, and clients that differ in them alone share
     * their connections.
     *
     * @param array<string, mixed> $options by the names of the table
     * @return array<string, mixed>
     */
    public static function ofLocks(#[\SensitiveParameter] array $options): array
    {
        self::names();
        return \array_intersect_key($options, self::$ofLocks);
    }

    /**
     * @param array<string, mixed> $options by the names of the table
     * @return array<string, mixed> the same as named arguments
     */
    public static function named(#[\SensitiveParameter] array $options): array
    {
        $named = [];
        foreach (self::names() as $name => $inTable) {
            $named += \array_key_exists($inTable, $options) ? [$name => $options[$inTable]] : [];
        }
        return $named;
    }

    public static function isTrue(mixed $value): bool
    {
        return \filter_var($value, \FILTER_VALIDATE_BOOL);
    }

    /** A text as a value of the same type as $like, which may also be a text such as "auto". */
    public static function typed(string $text, mixed $like): mixed
    {
        return match (true) {
            \is_bool($like) => $text === 'true',
            \is_numeric($text) => $text + 0,
            default => $text,
        };
    }

    /** The refusal of a call that was made with named arguments: it speaks of them. */
    public static function inNames(InvalidOptionException $refused): InvalidOptionException
    {
        $words = $refused->parts;
        for ($i = 1; $i < \count($words); $i += 2) {
            $words[$i] = \array_search($words[$i], self::names(), true) ?: $words[$i];
        }
        $named = new InvalidOptionException($words === [] ? $refused->getMessage() : \implode('', $words),
            $refused->getCode());
        [$named->resource, $named->votes, $named->parts] = [$refused->resource, $refused->votes, $refused->parts];
        return $named;
    }

    /** @return array<string, string> */
    private static function names(): array
    {
        if (self::$names === []) {
            for ($i = 0; ($name = \redlock_option_at($i, \REDLOCK_OPTION_NAME)) !== null; $i++) {
                self::$names[\lcfirst(\str_replace('_', '', \ucwords($name, '_')))] = $name;
                if (\redlock_option_at($i, \REDLOCK_OPTION_SCOPE) === 'both') {
                    self::$ofLocks[$name] = true;
                }
            }
        }
        return self::$names;
    }

    private static function unknown(string $name): InvalidOptionException
    {
        $camel = \lcfirst(\str_replace('_', '', \ucwords($name, '_')));
        $distances = \array_map(static fn (string $known): int => \strlen($camel) > 2 && \stripos($known, $camel) > -1
            ? 1 : \levenshtein($camel, $known), \array_keys(self::names()));
        $nearest = \array_keys(self::names())[\array_search(\min($distances), $distances, true)];
        $hint = \min($distances) <= \max(2, \intdiv(\strlen($camel), 3)) ? "; did you mean $nearest?" : '';
        return new InvalidOptionException("there is no option \"$name\"$hint");
    }
}
