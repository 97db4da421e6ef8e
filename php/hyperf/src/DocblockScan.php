<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

use Redlock\Exception\InvalidOptionException;

/**
 * @internal Hyperf 3 reads no docblocks: a method with the annotation of old would run without its lock, unnoticed.
 */
final class DocblockScan
{
    private const ANNOTATION =
        '/@(?:\\\\?RedlockHyperf\\\\Annotation\\\\)?RedLockAnnotation\s*(\([^@]*?\))?(?=\s|\*|$)/s';

    /** @param list<string> $paths folders of the application */
    public static function refuse(array $paths): void
    {
        foreach ($paths as $path) {
            foreach (self::files($path) as $file) {
                foreach (self::find(\file_get_contents($file)) as [$method, $arguments]) {
                    throw new InvalidOptionException("$method ($file) has the docblock annotation @RedLockAnnotation, "
                        . 'which Hyperf 3 does not read, so it would run without its lock; write the attribute '
                        . "#[RedLockAnnotation($arguments)]");
                }
            }
        }
    }

    /** @return list<array{string, string}> Class::method and the arguments as an attribute has them */
    public static function find(string $code): array
    {
        if (!\str_contains($code, 'RedLockAnnotation')) {
            return [];
        }
        $found = [];
        $namespace = $class = '';
        $arguments = null;
        foreach (\PhpToken::tokenize($code) as $i => $token) {
            $tokens ??= \PhpToken::tokenize($code);
            if ($token->is(\T_NAMESPACE)) {
                $namespace = self::name($tokens, $i) . '\\';
            } elseif ($token->is([\T_CLASS, \T_TRAIT]) && !self::isConstant($tokens, $i)) {
                $class = self::name($tokens, $i);
            } elseif ($token->is(\T_DOC_COMMENT)) {
                $arguments = \preg_match(self::ANNOTATION, $token->text, $match)
                    ? self::attribute($match[1] ?? '') : null;
            } elseif ($token->is(\T_FUNCTION) && $arguments !== null) {
                $found[] = [$namespace . $class . '::' . self::name($tokens, $i), $arguments];
                $arguments = null;
            } elseif ($token->is([';', '{', '}'])) {
                $arguments = null;
            }
        }
        return $found;
    }

    /** (resource="x", poolName={"a"}) -> resource: 'x', poolName: ['a'] */
    private static function attribute(string $arguments): string
    {
        $arguments = \preg_replace('/\s*\n\s*\*\s*/', ' ', \trim($arguments, '() '));
        $arguments = \preg_replace('/(\w+)\s*=\s*/', '$1: ', $arguments);
        return \strtr($arguments, ['{' => '[', '}' => ']', '"' => "'"]);
    }

    /** @param list<\PhpToken> $tokens */
    private static function name(array $tokens, int $from): string
    {
        for ($i = $from + 1; isset($tokens[$i]); $i++) {
            if ($tokens[$i]->is([\T_STRING, \T_NAME_QUALIFIED])) {
                return $tokens[$i]->text;
            }
            if ($tokens[$i]->is(['(', '{', ';'])) {
                break;
            }
        }
        return '';
    }

    /** @param list<\PhpToken> $tokens */
    private static function isConstant(array $tokens, int $i): bool
    {
        return ($tokens[$i - 1] ?? null)?->is([\T_DOUBLE_COLON, \T_NEW]) ?? false;
    }

    /** @return \Generator<string> */
    private static function files(string $path): \Generator
    {
        if (!\is_dir($path)) {
            return;
        }
        $files = new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator($path, \FilesystemIterator::SKIP_DOTS));
        foreach ($files as $file) {
            if ($file->getExtension() === 'php') {
                yield $file->getPathname();
            }
        }
    }
}
