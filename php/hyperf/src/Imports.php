<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

/** @internal The classes that one namespace of a file imports by `use`. */
final class Imports
{
    /** @var array<string, string> class by alias, in lower case: PHP's class names are not case-sensitive */
    private array $classes = [];

    public function __construct(private readonly string $namespace = '')
    {
    }

    /**
     * Reads one declaration: `use A\B;`, `use A\B as C, D;` or `use A\{B, C as D};`.
     *
     * @param list<\PhpToken> $tokens from behind `use` to its end, without blanks and comments
     */
    public function read(array $tokens): void
    {
        $prefix = $name = $alias = '';
        $isAlias = false;
        foreach ([...$tokens, new \PhpToken(\ord(','), ',')] as $token) {
            if ($token->is([\T_FUNCTION, \T_CONST])) {
                return;
            }
            if ($token->is(\T_AS)) {
                $isAlias = true;
            } elseif ($token->is([\T_STRING, \T_NAME_QUALIFIED, \T_NAME_FULLY_QUALIFIED])) {
                $isAlias ? $alias = $token->text : $name = $token->text;
            } elseif ($token->is('{')) {
                [$prefix, $name] = [\trim($name, '\\') . '\\', ''];
            } elseif ($token->is([',', '}']) && $name !== '') {
                $this->add($prefix . \ltrim($name, '\\'), $alias);
                [$name, $alias, $isAlias] = ['', '', false];
            }
        }
    }

    /**
     * The classes that a name in a docblock may mean, in lower case: an import, else one of this namespace or, as
     * docblocks often leave out the first backslash, the name itself.
     *
     * @return list<string>
     */
    public function resolve(string $name): array
    {
        $name = \strtolower($name);
        if ($name[0] === '\\') {
            return [\substr($name, 1)];
        }
        [$first, $rest] = \explode('\\', $name, 2) + [1 => null];
        if (isset($this->classes[$first])) {
            return [$this->classes[$first] . ($rest === null ? '' : "\\$rest")];
        }
        return [\strtolower($this->namespace) . "\\$name", $name];
    }

    private function add(string $class, string $alias): void
    {
        $alias = $alias === '' ? \substr((string) \strrchr("\\$class", '\\'), 1) : $alias;
        $this->classes[\strtolower($alias)] = \strtolower($class);
    }
}
