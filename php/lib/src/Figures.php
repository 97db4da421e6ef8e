<?php

declare(strict_types=1);

namespace Redlock;

/** @internal The text of metrics(), parsed into families. */
final class Figures
{
    /**
     * @param 'counter'|'gauge'|'histogram'|'info' $kind
     * @param list<array{string, array<string, string>, float}> $samples name, labels and value
     */
    private function __construct(
        public readonly string $name,
        public readonly string $kind,
        public readonly string $help,
        public readonly array $samples,
    ) {
    }

    /** @return list<self> */
    public static function read(string $text): array
    {
        $blocks = \array_slice(\explode('# TYPE ', $text), 1);
        return \array_map(static function (string $block): self {
            $lines = \array_diff(\explode("\n", \rtrim($block)), ['# EOF']);
            [$name, $kind] = \explode(' ', $lines[0]);
            $help = \explode(' ', $lines[1], 4)[3];
            return new self($name, $kind, $help, \array_map(self::sample(...), \array_slice($lines, 2)));
        }, $blocks);
    }

    /** @return array{string, array<string, string>, float} */
    private static function sample(string $line): array
    {
        $end = \strrpos($line, ' ');
        $name = \substr($line, 0, \strcspn($line, '{ '));
        $given = \substr($line, \strlen($name), $end - \strlen($name));
        \preg_match_all('/(\w+)="((?:[^"\\\\]|\\\\.)*)"/', $given, $labels);
        $values = \array_map(static fn (string $value): string => \preg_replace('/\\\\(.)/', '$1', $value), $labels[2]);
        return [$name, \array_combine($labels[1], $values), (float) \substr($line, $end + 1)];
    }
}
