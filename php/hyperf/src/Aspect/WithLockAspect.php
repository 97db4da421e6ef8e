<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Aspect;

use Hyperf\Di\Aop\AbstractAspect;
use Hyperf\Di\Aop\ProceedingJoinPoint;
use Redlock\Hyperf\Annotation\WithLock;
use Redlock\Hyperf\Attributes;
use Redlock\Hyperf\LockedCall;
use Redlock\Hyperf\Locks;
use RedlockHyperf\Annotation\RedLockAnnotation;

final class WithLockAspect extends AbstractAspect
{
    public array $annotations = [WithLock::class, RedLockAnnotation::class];

    /** Outermost: a transaction of the method ends before its lock does. */
    public ?int $priority = \PHP_INT_MAX;

    public function __construct(private readonly Locks $locks)
    {
    }

    public function process(ProceedingJoinPoint $proceedingJoinPoint)
    {
        $method = $proceedingJoinPoint->getReflectMethod();
        $specs = Attributes::of($proceedingJoinPoint->className, $method);
        if ($specs === []) {
            return $proceedingJoinPoint->process();
        }
        $call = new LockedCall(
            $this->locks,
            "$proceedingJoinPoint->className::$proceedingJoinPoint->methodName",
            $proceedingJoinPoint->arguments['keys'] ?? [],
            $proceedingJoinPoint->getArguments(),
            $proceedingJoinPoint->getInstance(),
            static function (array $given) use ($proceedingJoinPoint): mixed {
                $proceedingJoinPoint->arguments['keys'] = $given + ($proceedingJoinPoint->arguments['keys'] ?? []);
                return $proceedingJoinPoint->process();
            },
        );
        return $call->run($specs);
    }
}
