<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

use PhpParser\Node;
use PhpParser\Node\Expr\Closure;
use PhpParser\Node\Expr\StaticCall;
use PhpParser\Node\Expr\Yield_;
use PhpParser\Node\Expr\YieldFrom;
use PhpParser\Node\FunctionLike;
use PhpParser\Node\Identifier;
use PhpParser\Node\Stmt\ClassLike;
use PhpParser\Node\Stmt\ClassMethod;
use PhpParser\NodeFinder;
use PhpParser\Parser;
use PhpParser\ParserFactory;

/**
 * @internal Hyperf moves the body of a method under an aspect into a closure of a proxy class, an argument of
 * __proxyCall(): what reflection says is said of the proxy, not of the body. The parser comes with hyperf/di.
 */
final class ProxiedBody
{
    public static function isGenerator(\ReflectionMethod $method): bool
    {
        if ($method->isGenerator()) {
            return true;
        }
        $body = self::of($method);
        return $body !== null && self::yields($body->stmts);
    }

    private static function of(\ReflectionMethod $method): ?Closure
    {
        $code = (string) @\file_get_contents((string) $method->getFileName());
        if (!\str_contains($code, '__proxyCall(')) {
            return null;
        }
        $finder = new NodeFinder();
        $found = $finder->findFirst(self::parser()->parse($code) ?? [], static fn (Node $node): bool =>
            $node instanceof ClassMethod && $node->name->toString() === $method->getName()
            && $node->getStartLine() <= $method->getEndLine() && $node->getEndLine() >= $method->getStartLine());
        $call = $found === null ? null : $finder->findFirst($found, static fn (Node $node): bool =>
            $node instanceof StaticCall && $node->name instanceof Identifier
            && $node->name->toString() === '__proxyCall');
        $body = $call === null ? null : \end($call->args)->value;
        return $body instanceof Closure ? $body : null;
    }

    /** @param array<mixed> $nodes functions and classes within them have bodies of their own */
    private static function yields(array $nodes): bool
    {
        foreach ($nodes as $node) {
            if ($node instanceof Yield_ || $node instanceof YieldFrom) {
                return true;
            }
            if (\is_array($node) && self::yields($node)) {
                return true;
            }
            if ($node instanceof Node && !$node instanceof FunctionLike && !$node instanceof ClassLike
                && self::yields(\array_map(static fn (string $name): mixed => $node->{$name},
                    $node->getSubNodeNames()))) {
                return true;
            }
        }
        return false;
    }

    public static function parser(): Parser
    {
        $factory = new ParserFactory();
        return \method_exists($factory, 'createForHostVersion') /* of php-parser 5, Hyperf 3.1 has 4 */
            ? $factory->createForHostVersion() : $factory->create(ParserFactory::PREFER_PHP7);
    }
}
