<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

use Redlock\Exception\InvalidOptionException;
use Redlock\Hyperf\Annotation\WithLock;
use RedlockHyperf\Annotation\RedLockAnnotation;

/**
 * @internal Hyperf 3 reads no docblocks: a method with the annotation of old there, or with the attribute's name, would
 * run without its lock, unnoticed. A name in a docblock is resolved as one in the code is; its arguments do not matter.
 */
final class DocblockScan
{
    /** An "@" within a word is that of an address. */
    private const NAMES = '/(?<![\w.+\-@])@(\\\\?[a-z_]\w*(?:\\\\[a-z_]\w*)*)/i';

    private Imports $imports;
    private string $namespace = '';
    private string $class = '';
    private int $depth = 0;

    /** The depth at which `use` imports: 1 within `namespace X { ... }`. */
    private int $importDepth = 0;

    /** The last docblock, until it is known what it stands above. */
    private ?string $docblock = null;

    /** @var list<array{string, string, Imports}> method, docblock, and what was imported there */
    private array $methods = [];

    /** @param list<\PhpToken> $tokens without blanks and comments */
    private function __construct(private readonly array $tokens)
    {
        $this->imports = new Imports();
    }

    /** @param list<string> $paths folders of the application */
    public static function refuse(array $paths): void
    {
        foreach ($paths as $path) {
            foreach (self::files($path) as $file) {
                foreach (self::find((string) \file_get_contents($file)) as [$method, $name, $arguments]) {
                    throw new InvalidOptionException("$method ($file) has the docblock annotation @$name, which "
                        . 'Hyperf 3 does not read, so it would run without its lock; write the attribute '
                        . "#[$name($arguments)]");
                }
            }
        }
    }

    /** @return list<array{string, string, string}> Class::method, the annotation, its arguments for an attribute */
    public static function find(string $code): array
    {
        if (\preg_match('/RedLockAnnotation|WithLock/i', $code) !== 1) {
            return [];
        }
        $scan = new self(\array_values(\array_filter(\PhpToken::tokenize($code),
            static fn (\PhpToken $token): bool => !$token->is([\T_WHITESPACE, \T_COMMENT]))));
        $scan->readMethods();
        $found = [];
        foreach ($scan->methods as [$method, $docblock, $imports]) {
            \preg_match_all(self::NAMES, $docblock, $names, \PREG_SET_ORDER | \PREG_OFFSET_CAPTURE);
            foreach ($names as [1 => [$name, $at]]) {
                $behind = \substr($docblock, $at + \strlen($name));
                if (self::isAnnotation($name, $behind, $imports)) {
                    $found[] = [$method, $name, self::attribute($behind)];
                    break;
                }
            }
        }
        return $found;
    }

    private static function isAnnotation(string $name, string $behind, Imports $imports): bool
    {
        $meant = $imports->resolve($name);
        return \in_array(\strtolower(RedLockAnnotation::class), $meant, true)
            || \in_array('redlockannotation', $meant, true) /* it was never imported, but nothing else can be meant */
            || \in_array(\strtolower(WithLock::class), $meant, true) /* a text may mention it, without arguments */
                && \preg_match('/^[\s*]*\(/', $behind) === 1;
    }

    private function readMethods(): void
    {
        for ($i = 0; isset($this->tokens[$i]); $i++) {
            $token = $this->tokens[$i];
            match (true) {
                $token->is(\T_DOC_COMMENT) => $this->docblock = $token->text,
                $token->is(\T_ATTRIBUTE) => $i = $this->endOfAttribute($i),
                $token->is(\T_NAMESPACE) => $this->enterNamespace($i),
                $token->is(\T_USE) => $i = $this->import($i),
                $token->is([\T_CLASS, \T_TRAIT, \T_INTERFACE, \T_ENUM]) => $this->enterClass($i),
                $token->is(\T_FUNCTION) => $this->addMethod($i),
                $token->is(['{', \T_CURLY_OPEN, \T_DOLLAR_OPEN_CURLY_BRACES]) => $this->nest(1),
                $token->is('}') => $this->nest(-1),
                $token->is([';', \T_VARIABLE, \T_CONST, \T_CASE]) => $this->docblock = null,
                default => null,
            };
        }
    }

    private function nest(int $by): void
    {
        $this->depth += $by;
        $this->docblock = null;
    }

    private function enterNamespace(int $i): void
    {
        $this->namespace = $this->nameBehind($i);
        $this->imports = new Imports($this->namespace);
        $this->class = '';
        $opens = $this->namespace === '' ? $i + 1 : $i + 2;
        $this->importDepth = $this->depth + (int) (($this->tokens[$opens] ?? null)?->is('{') ?? false);
    }

    /** The end of the declaration; a closure's `use (...)` and a class's traits are none. */
    private function import(int $from): int
    {
        $this->docblock = null;
        if ($this->depth !== $this->importDepth || ($this->tokens[$from + 1] ?? null)?->is('(')) {
            return $from;
        }
        for ($end = $from; isset($this->tokens[$end]) && !$this->tokens[$end]->is(';');) {
            $end++;
        }
        $this->imports->read(\array_slice($this->tokens, $from + 1, $end - $from - 1));
        return $end;
    }

    private function enterClass(int $i): void
    {
        $name = ($this->tokens[$i - 1] ?? null)?->is([\T_DOUBLE_COLON, \T_NEW]) ? '' : $this->nameBehind($i);
        $this->class = $name === '' ? $this->class : $name;
        $this->docblock = null;
    }

    private function addMethod(int $i): void
    {
        if ($this->docblock !== null) {
            $class = \ltrim("$this->namespace\\$this->class", '\\');
            $this->methods[] = ["$class::" . $this->nameBehind($i), $this->docblock, $this->imports];
        }
        $this->docblock = null;
    }

    private function endOfAttribute(int $i): int
    {
        for ($open = 1; $open > 0 && isset($this->tokens[$i + 1]);) {
            $i++;
            $open += (int) $this->tokens[$i]->is(['[', \T_ATTRIBUTE]) - (int) $this->tokens[$i]->is(']');
        }
        return $i;
    }

    private function nameBehind(int $i): string
    {
        $next = $this->tokens[$i + 1] ?? null;
        if ($next !== null && $next->text === '&') {
            $next = $this->tokens[$i + 2] ?? null;
        }
        return $next !== null && \preg_match('/^[\w\\\\]/', $next->text) ? $next->text : '';
    }

    /** What stands behind the name, (resource="x", poolName={"a"}): resource: 'x', poolName: ['a'] */
    private static function attribute(string $behind): string
    {
        if (\preg_match('/^[\s*]*\(((?:"(?:[^"]|"")*"|[^")])*)\)/', $behind, $match) !== 1) {
            return '';
        }
        $arguments = \trim((string) \preg_replace('/\s*\n\s*\*?\s*/', ' ', $match[1]));
        $arguments = \preg_replace('/"[^"]*"(*SKIP)(*FAIL)|(\w+)\s*=\s*/', '$1: ', $arguments);
        return \strtr((string) $arguments, ['{' => '[', '}' => ']', '"' => "'"]);
    }

    /** @return \Generator<string> those of PHP in a folder */
    public static function files(string $path): \Generator
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
