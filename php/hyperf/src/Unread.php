<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

use PhpParser\ErrorHandler\Collecting;
use PhpParser\Node;
use PhpParser\NodeFinder;
use PhpParser\NodeTraverser;
use PhpParser\NodeVisitor\NameResolver;
use Redlock\Exception\InvalidOptionException;
use Redlock\Hyperf\Annotation\WithLock;
use RedlockHyperf\Annotation\RedLockAnnotation;

/** @internal Attributes that Hyperf never reads: what they stand above would run without its lock, unnoticed. */
final class Unread
{
    /** @param list<string> $paths folders of the application */
    public static function refuse(array $paths): void
    {
        foreach ($paths as $path) {
            foreach (DocblockScan::files($path) as $file) {
                foreach (self::lines((string) \file_get_contents($file)) as $line) {
                    throw new InvalidOptionException("$file:$line: the attribute locks nothing: Hyperf reads those of "
                        . 'the first class of a file and of its methods, if that has a name and a namespace');
                }
            }
        }
    }

    /** @return list<int> those in anonymous classes, on functions, in the second class of a file */
    public static function lines(string $code): array
    {
        if (\preg_match('/WithLock|RedLockAnnotation/', $code) !== 1) {
            return [];
        }
        $names = new NodeTraverser();
        $names->addVisitor(new NameResolver());
        $all = $names->traverse(ProxiedBody::parser()->parse($code, new Collecting()) ?? []);
        $read = [];
        foreach ($all as $namespace) {
            $isNamed = $namespace instanceof Node\Stmt\Namespace_ && $namespace->name !== null;
            foreach ($isNamed ? $namespace->stmts : [] as $class) {
                if ($class instanceof Node\Stmt\ClassLike) {
                    \array_push($read, ...$class->attrGroups);
                    foreach ($class->getMethods() as $method) {
                        \array_push($read, ...$method->attrGroups);
                    }
                    break;
                }
            }
        }
        $lines = static fn (array $nodes): array => \array_map(static fn (Node $node): int => $node->getStartLine(),
            (new NodeFinder())->find($nodes, static fn (Node $node): bool => $node instanceof Node\Attribute
                && \in_array($node->name->toString(), [WithLock::class, RedLockAnnotation::class], true)));
        return \array_values(\array_diff($lines($all), $lines($read)));
    }
}
