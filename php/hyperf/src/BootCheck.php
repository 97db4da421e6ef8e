<?php

declare(strict_types=1);

namespace Redlock\Hyperf;

use Hyperf\AsyncQueue\Annotation\AsyncQueueMessage;
use Hyperf\Di\Annotation\AnnotationCollector;
use Hyperf\Task\Annotation\Task;
use Redlock\Exception\BusyException;
use Redlock\Exception\InvalidOptionException;
use Redlock\Exception\NoQuorumException;
use Redlock\Hold;
use Redlock\HoldInterface;

/** @internal Refuses methods whose attributes would lock nothing, or the wrong thing, later. */
final class BootCheck
{
    /** Types of parameters that take what an option gives, which is the first. */
    private const GIVEN = ['fence' => ['int', 'float', 'mixed'],
        'hold' => [Hold::class, HoldInterface::class, 'mixed']];

    public function __construct(private readonly Locks $locks)
    {
    }

    /** @param list<LockSpec> $specs of the method */
    public function method(string $class, \ReflectionMethod $method, array $specs): void
    {
        $name = "$class::{$method->getName()}";
        if ($specs !== [] && ProxiedBody::isGenerator($method)) {
            throw new InvalidOptionException("$name is a generator: its body runs when it is iterated, after the lock "
                . 'was released; return the values, or lock inside of it');
        }
        foreach ($specs === [] ? [] : $method->getParameters() as $parameter) {
            $parameter->isPassedByReference() && throw new InvalidOptionException("$name takes "
                . "\${$parameter->getName()} by reference, and Hyperf's AOP hands it a copy: what it writes would be "
                . 'lost; return it, or lock inside of it');
        }
        foreach ($specs === [] ? [] : [Task::class, AsyncQueueMessage::class] as $other) {
            $own = AnnotationCollector::getClassMethodAnnotation($class, $method->getName())[$other] ?? null;
            ($own ?? AnnotationCollector::getClassAnnotation($class, $other)) === null
                || throw new InvalidOptionException("$name has the attribute $other, too: the lock would be "
                . 'held here, while another process calls the method anew; lock a method that it calls');
        }
        $parameters = \array_map(static fn (\ReflectionParameter $parameter): string => $parameter->getName(),
            $method->getParameters());
        foreach ($specs as $spec) {
            foreach ($spec->templates($name) as $template) {
                $template->check($method->isStatic() ? $parameters : ['this', ...$parameters]);
            }
            self::isMethod('onBusy', $spec->onBusy, BusyException::class, $class, $method);
            self::isMethod('onNoQuorum', $spec->onNoQuorum, NoQuorumException::class, $class, $method);
            self::onLost($spec->onLost, $name);
            self::isParameter('fence', $spec->fence, $method, $name);
            self::isParameter('hold', $spec->hold, $method, $name);
            $this->options($spec, $name);
        }
    }

    /**
     * @param class-string $told what one parameter more may be given
     * @param \ReflectionMethod $method with whose parameters it is called
     */
    private static function isMethod(
        string $option,
        ?string $value,
        string $told,
        string $class,
        \ReflectionMethod $method,
    ): void {
        if ($value === null) {
            return;
        }
        $name = "$class::{$method->getName()}: $option is '$value', which";
        $other = \method_exists($class, $value) ? new \ReflectionMethod($class, $value) : null;
        if (!$other?->isPublic() || $method->isStatic() && !$other->isStatic()) {
            $static = $method->isStatic() ? ' static' : '';
            throw new InvalidOptionException("$name is no public$static method of $class");
        }
        if ($other->getName() === $method->getName()) {
            throw new InvalidOptionException("$name has that very lock, too, and would call itself again and again: "
                . 'write the attribute above methods, and not above the class');
        }
        foreach (\array_slice($other->getParameters(), $method->getNumberOfParameters()) as $parameter) {
            $parameter->isOptional() || LockedCall::isTold($parameter, $told) || throw new InvalidOptionException(
                "$name requires \${$parameter->getName()}; allowed behind the parameters "
                . "of the method: one of the type $told");
        }
    }

    private static function isParameter(string $option, ?string $value, \ReflectionMethod $method, string $name): void
    {
        foreach ($value === null ? [] : $method->getParameters() as $parameter) {
            if ($parameter->getName() === $value) {
                $type = $parameter->getType();
                !$type instanceof \ReflectionNamedType || \in_array($type->getName(), self::GIVEN[$option], true)
                    || throw new InvalidOptionException("$name: $option is '$value', a parameter of the type $type; "
                        . 'allowed: ?' . self::GIVEN[$option][0]);
                return;
            }
        }
        $value === null || throw new InvalidOptionException("$name: $option is '$value', which is no parameter of the "
            . 'method');
    }

    private static function onLost(?string $value, string $name): void
    {
        if ($value !== null && $value !== LockSpec::CANCEL) {
            throw new InvalidOptionException("$name: onLost is '$value'; allowed: 'cancel'");
        }
        if ($value !== null && !CancelOnLoss::isPossible()) {
            throw new InvalidOptionException("$name: onLost is 'cancel', which needs Swoole 6.1 or newer: "
                . 'older versions can not throw into a coroutine; ask Locks::current()->isLost() in the method');
        }
    }

    private function options(LockSpec $spec, string $name): void
    {
        try {
            $this->locks->check($spec);
        } catch (InvalidOptionException $wrong) {
            $named = $spec->translate === null ? $wrong : ($spec->translate)($wrong);
            $asks = ($wrong->parts[1] ?? '') === 'fence' ? "fence is '$spec->fence', which asks for a number: " : '';
            throw new InvalidOptionException("$name: $asks" . $named->getMessage());
        }
    }
}
