<?php

declare(strict_types=1);

/** Prints the reference of the PHP library as Markdown: public classes and methods with their doc comments. */

require __DIR__ . '/../php/lib/autoload.php';

const PARAMETER = '~^(param|return|throws)\s+([^\s<]+(?:<[^>]*>)?(?:\|\S+)?)\s*(\.{0,3}\$\w+)?\s*(.*)$~s';
const SHOWN = '~^((Client|Hold|Lock)(Interface)?|Term|ResourceStatus|Verdict|Status|Event/\w+|Testing/\w+)$~';

/** One tag as a point of a list; those that only repeat a type say nothing. */
function point(string $tag): string
{
    if (!preg_match(PARAMETER, trim($tag), $found) || $found[4] === '') {
        return '';
    }
    $name = $found[3] !== '' ? "`{$found[3]}` " : '';
    return "\n\n- *{$found[1]}* $name" . preg_replace('~\s+~', ' ', $found[4]);
}

/** The words of a doc comment, and its parameters. */
function words(string|false $comment): string
{
    if ($comment === false) {
        return '';
    }
    $text = preg_replace('~^\s*\* ?~m', '', substr(trim($comment), 3, -2));
    $tags = preg_split('~^@~m', trim($text));
    return trim(array_shift($tags)) . implode('', array_map('point', $tags)) . "\n";
}

function parameter(ReflectionParameter $p): string
{
    $default = $p->isDefaultValueAvailable() ? ' = ' . strtolower(var_export($p->getDefaultValue(), true)) : '';
    return trim($p->getType() . ' ' . ($p->isVariadic() ? '...' : '') . '$' . $p->getName()) . $default;
}

function signature(ReflectionMethod $method): string
{
    $parameters = array_map('parameter', $method->getParameters());
    $line = implode(', ', $parameters);
    $line = strlen($line) > 90 ? "\n    " . implode(",\n    ", $parameters) . ",\n" : $line;
    $returned = $method->hasReturnType() ? ": {$method->getReturnType()}" : '';
    return ($method->isStatic() ? 'static ' : '') . "function {$method->getName()}($line)$returned";
}

function isInternal(string|false $comment): bool
{
    return str_contains((string) $comment, '@internal');
}

function isShown(ReflectionMethod $method, string $class): bool
{
    $name = $method->getName();
    return $method->getDeclaringClass()->getName() === $class && !isInternal($method->getDocComment())
        && ($name === '__construct' || !str_starts_with($name, '__'));
}

function section(string $name): void
{
    $class = new ReflectionClass($name);
    if (isInternal($class->getDocComment())) {
        return;
    }
    echo "## $name\n\n", words($class->getDocComment()), "\n";
    foreach ($class->getMethods(ReflectionMethod::IS_PUBLIC) as $method) {
        if (isShown($method, $name)) {
            echo "### {$class->getShortName()}::{$method->getName()}\n\n```php\n", signature($method), "\n```\n\n";
            echo words($method->getDocComment()), "\n";
        }
    }
}

$root = realpath(__DIR__ . '/../php/lib/src');
$names = [];
foreach (new RecursiveIteratorIterator(new RecursiveDirectoryIterator($root, FilesystemIterator::SKIP_DOTS)) as $file) {
    $relative = substr($file->getPathname(), strlen($root) + 1, -4);
    if (preg_match(SHOWN, $relative)) {
        $names[] = 'Redlock\\' . strtr($relative, '/', '\\');
    }
}
sort($names);
echo "# PHP reference\n\n[PHP](../docs/php.md) is the guide; ";
echo "[all options](../docs/options.md) lists the named arguments.\n\n";
array_map('section', $names);
