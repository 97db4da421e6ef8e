<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

/**
 * @internal Classes that extend or use others, by the text of the files that Hyperf scans: Hyperf knows only those with
 * attributes, and to load all of them would load what a worker never uses.
 */
final class Heirs
{
    /** `class A extends B`, a trait, or `use C, D;` in one of them. */
    private const LINES = '/^[ \t]*(?:#\[.*\]\s*)?(?:(?:abstract|final|readonly)\s+)*'
        . '(?:class|trait)\s+(?<class>\w+)(?:\s+extends\s+(?<parent>[\w\\\\]+))?'
        . '|(?:^[ \t]+|\{\s*)use\s+(?<traits>[\w\\\\,\s]+?)\s*[;{]/mi';

    /**
     * @param list<string> $paths
     * @param list<string> $classes
     * @return list<string> these and their heirs, and maybe classes of the same names elsewhere
     */
    public static function of(array $paths, array $classes): array
    {
        $heirs = [];
        foreach ($paths as $path) {
            foreach (DocblockScan::files($path) as $file) {
                foreach (self::inheriting((string) \file_get_contents($file)) as [$class, $from]) {
                    $heirs[$from][] = $class;
                }
            }
        }
        for ($i = 0; $i < \count($classes); $i++) {
            $name = self::short($classes[$i]);
            \array_push($classes, ...$heirs[$name] ?? []);
            unset($heirs[$name]);
        }
        return \array_values(\array_unique($classes));
    }

    /** @return list<array{string, string}> a class, and one that it extends or uses: in lower case, no namespace */
    private static function inheriting(string $code): array
    {
        $found = [];
        $namespace = \preg_match('/^[ \t]*namespace\s+([\w\\\\]+)/mi', $code, $match) === 1 ? "$match[1]\\" : '';
        \preg_match_all(self::LINES, $code, $matches, \PREG_SET_ORDER | \PREG_UNMATCHED_AS_NULL);
        foreach ($matches as ['class' => $name, 'parent' => $parent, 'traits' => $traits]) {
            $class = $name ?? $class ?? '';
            foreach (\preg_split('/[\s,]+/', "$parent$traits", -1, \PREG_SPLIT_NO_EMPTY) as $from) {
                $short = self::short($from);
                $imported = \preg_match("/(\\w+)\\s+as\\s+$short\\b/i", $code, $match) === 1 ? $match[1] : $short;
                $found[] = [$namespace . $class, \strtolower($imported)];
            }
        }
        return $found;
    }

    private static function short(string $class): string
    {
        return \strtolower(\substr((string) \strrchr("\\$class", '\\'), 1));
    }
}
