<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

/**
 * @internal Classes that extend others, by the text of the files that Hyperf scans: Hyperf knows only those with
 * attributes, and to load all of them would load what a worker never uses.
 */
final class Heirs
{
    private const EXTENDS = '/^[ \t]*(?:#\[.*\]\s*)?(?:(?:abstract|final|readonly)\s+)*'
        . 'class\s+(\w+)\s+extends\s+(?:[\w\\\\]*\\\\)?(\w+)/mi';

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
                foreach (self::extending((string) \file_get_contents($file)) as $class => $parent) {
                    $heirs[$parent][] = $class;
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

    /** @return array<string, string> the class in lower case, without its namespace, that each class extends */
    private static function extending(string $code): array
    {
        $found = [];
        $namespace = \preg_match('/^[ \t]*namespace\s+([\w\\\\]+)/mi', $code, $match) === 1 ? "$match[1]\\" : '';
        \preg_match_all(self::EXTENDS, $code, $matches, \PREG_SET_ORDER);
        foreach ($matches as [, $class, $parent]) {
            $imported = \preg_match("/(\\w+)\\s+as\\s+$parent\\b/i", $code, $match) === 1 ? $match[1] : $parent;
            $found[$namespace . $class] = \strtolower($imported);
        }
        return $found;
    }

    private static function short(string $class): string
    {
        return \strtolower(\substr((string) \strrchr("\\$class", '\\'), 1));
    }
}
