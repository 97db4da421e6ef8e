<?php

declare(strict_types=1);

/** Prints the reference of the PHP library as Markdown: public classes and methods with their doc comments. */

require __DIR__ . '/../php/lib/autoload.php';

/** The words of a doc comment, and its parameters. */
function words(string|false $comment): string
{
    if ($comment === false) {
        return '';
    }
    $text = preg_replace('~^\s*\* ?~m', '', substr(trim($comment), 3, -2));
    $tags = preg_split('~^@~m', trim($text));
    $out = trim(array_shift($tags));
    foreach ($tags as $tag) {
        if (preg_match('~^(param|return|throws)\s+([^\s<]+(?:<[^>]*>)?(?:\|\S+)?)\s*(\.{0,3}\$\w+)?\s*(.*)$~s', trim($tag), $found) && $found[4] !== '') {
            $name = $found[3] !== '' ? "`{$found[3]}` " : '';
            $out .= "\n\n- *{$found[1]}* $name" . preg_replace('~\s+~', ' ', $found[4]);
        }
    }
    return $out . "\n";
}

function signature(ReflectionMethod $method): string
{
    $parameters = array_map(
        fn (ReflectionParameter $p): string => trim(($p->getType() ?? '') . ' ' . ($p->isVariadic() ? '...' : '') . '$' . $p->getName())
            . ($p->isDefaultValueAvailable() ? ' = ' . strtolower(var_export($p->getDefaultValue(), true)) : ''),
        $method->getParameters(),
    );
    $line = implode(', ', $parameters);
    $line = strlen($line) > 90 ? "\n    " . implode(",\n    ", $parameters) . ",\n" : $line;
    return ($method->isStatic() ? 'static ' : '') . "function {$method->getName()}($line)" . ($method->hasReturnType() ? ": {$method->getReturnType()}" : '');
}

function section(string $name): void
{
    $class = new ReflectionClass($name);
    echo "## $name\n\n", words($class->getDocComment()), "\n";
    foreach ($class->getMethods(ReflectionMethod::IS_PUBLIC) as $method) {
        $comment = $method->getDocComment();
        $isOwn = $method->getDeclaringClass()->getName() === $name;
        if (!$isOwn || str_contains((string) $comment, '@internal') || str_starts_with($method->getName(), '__') && $method->getName() !== '__construct') {
            continue;
        }
        echo '### ', $class->getShortName(), '::', $method->getName(), "\n\n```php\n", signature($method), "\n```\n\n", words($comment), "\n";
    }
}

$root = realpath(__DIR__ . '/../php/lib/src');
$names = [];
foreach (new RecursiveIteratorIterator(new RecursiveDirectoryIterator($root, FilesystemIterator::SKIP_DOTS)) as $file) {
    $relative = substr($file->getPathname(), strlen($root) + 1, -4);
    if (preg_match('~^(Client|ClientInterface|Lock|LockInterface|ResourceStatus|Verdict|Status|Event/\w+|Testing/\w+)$~', $relative)) {
        $names[] = 'Redlock\\' . strtr($relative, '/', '\\');
    }
}
sort($names);
echo "# PHP reference\n\n[PHP](../docs/php.md) is the guide; [all options](../docs/options.md) lists the named arguments.\n\n";
array_map('section', array_filter($names, fn (string $name): bool => (class_exists($name) || interface_exists($name) || enum_exists($name)) && !str_contains((string) (new ReflectionClass($name))->getDocComment(), '@internal')));
