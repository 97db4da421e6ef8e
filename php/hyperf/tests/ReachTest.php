<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests;

use Hyperf\Contract\ConfigInterface;
use PHPUnit\Framework\TestCase;
use Redlock\Exception\InvalidOptionException;
use Redlock\Hyperf\Annotation\WithLock;
use Redlock\Hyperf\Attributes;
use Redlock\Hyperf\Listener\BootListener;
use Redlock\Hyperf\Locks;
use Redlock\Hyperf\Tests\Heirs\CreditCardPayment;
use Redlock\Hyperf\Tests\Heirs\Gift;
use Redlock\Hyperf\Tests\Heirs\Payment;
use Redlock\Hyperf\Tests\Heirs\Refundable;
use Redlock\Tests\MemoryLogger;

require_once __DIR__ . '/hyperf.php';

/** Which methods Hyperf's AOP puts under the locks of an attribute; those that it would not stop the boot. */
final class ReachTest extends TestCase
{
    /** @return list<array{string, string}> what is logged */
    private static function boot(string ...$classes): array
    {
        $log = new MemoryLogger();
        Scanner::scan(...$classes);
        $config = new class implements ConfigInterface {
            public function get(string $key, mixed $default = null): mixed
            {
                return $key === 'annotations.scan.paths' ? [__DIR__ . '/Heirs'] : $default;
            }

            public function has(string $keys): bool
            {
                return false;
            }

            public function set(string $key, mixed $value): void
            {
            }
        };
        (new BootListener($config, new Locks(['default' => ['nodes' => []]], [], $log)))->process(new \stdClass());
        return \array_map(static fn (array $one): array => [$one[0], $one[1]], $log->records);
    }

    /** @dataProvider dead */
    public function testAnAttributeThatLocksNothingStopsTheBoot(string $words, string ...$classes): void
    {
        $this->expectException(InvalidOptionException::class);
        $this->expectExceptionMessage(\strtr($words, ['@' => __NAMESPACE__ . '\\']));
        self::boot(...$classes);
    }

    public static function dead(): array
    {
        return [
            'a class, of a method of its parent' => ['@HeirOfPlain::parental would run without the lock of '
                . '@HeirOfPlain: its code is in @Plain; declare it again in @HeirOfPlain', HeirOfPlain::class],
            'a class, of a method of its trait' => ['@UsesPlain::ofTrait would run without the lock of @UsesPlain: '
                . 'its code is in @PlainTrait', UsesPlain::class],
            'a class, of a method of a trait of its trait' => ['its code is in @PlainTrait', UsesDeeply::class],
            'a method of an interface' => ['@Demands::demanded is abstract: an attribute there locks nothing',
                Demands::class],
            'the same, found in a class' => ['@Demands::demanded is abstract', Demanded::class],
            'an abstract method' => ['@Unfinished::demanded is abstract', Unfinished::class],
            'an interface' => ['the attribute of @LockedInterface locks nothing', LockedInterface::class],
            'an empty trait' => ['the attribute of @LockedTrait locks nothing', LockedTrait::class],
            'a class with static methods only' => ['the attribute of @Statics locks nothing', Statics::class],
            'a method of a parent outside of the scan' => ['@Locked::pay would run without its lock: Hyperf does not '
                . 'scan @Locked', Heir::class],
            'a constructor beside its class' => ['@Twice::__construct would not be locked', Twice::class],
        ];
    }

    public function testAnOverrideThatHasNoLockIsWarnedOf(): void
    {
        $logged = self::boot(Locked::class, OwnTrait::class, OfAll::class, LessThanItsParent::class);
        $this->assertSame([['warning', 'redlock: ' . LessThanItsParent::class . '::own overrides a method that has a '
            . 'lock, and has none: attributes are not inherited; write it there, too']], $logged);
    }

    public function testAnOverrideInAClassWithoutAttributesIsWarnedOf(): void
    {
        $this->assertSame([['warning', 'redlock: ' . CreditCardPayment::class . '::pay overrides a method that has a '
            . 'lock, and has none: attributes are not inherited; write it there, too']], self::boot(Payment::class));
    }

    public function testAnOverrideOfATraitsMethodIsWarnedOf(): void
    {
        $this->assertSame([['warning', 'redlock: ' . Gift::class . '::refund overrides a method that has a lock, and '
            . 'has none: attributes are not inherited; write it there, too']], self::boot(Refundable::class));
    }

    public function testWhatIsLockedBoots(): void
    {
        $logged = self::boot(Heir::class, Locked::class, OfAll::class, OwnTrait::class, OnlyMade::class, Suit::class,
            OfPhp::class);
        $this->assertSame([], $logged);
        $names = \array_keys(Attributes::methods());
        \sort($names);
        $this->assertSame(\array_map(static fn (string $name): string => __NAMESPACE__ . "\\$name",
            ['Locked::pay', 'OfAll::own', 'OfPhp::own', 'OnlyMade::__construct', 'OwnTrait::ofTrait',
                'Suit::label']), $names);
    }
}

class Plain
{
    public function parental(): void
    {
    }
}

#[WithLock('heir')]
class HeirOfPlain extends Plain
{
    public function own(): void
    {
    }
}

trait PlainTrait
{
    public function ofTrait(): void
    {
    }
}

trait DeepTrait
{
    use PlainTrait;
}

#[WithLock('uses')]
class UsesPlain
{
    use PlainTrait;

    public function own(): void
    {
    }
}

#[WithLock('uses')]
class UsesDeeply
{
    use DeepTrait {
        ofTrait as renamed;
    }
}

interface Demands
{
    #[WithLock('demanded')]
    public function demanded(): void;
}

abstract class Demanded implements Demands
{
}

abstract class Unfinished
{
    #[WithLock('demanded')]
    abstract public function demanded(): void;
}

#[WithLock('interface')]
interface LockedInterface
{
    public function demanded(): void;
}

#[WithLock('trait')]
trait LockedTrait
{
}

#[WithLock('statics')]
class Statics
{
    public static function make(): void
    {
    }
}

class Locked
{
    #[WithLock('pay')]
    public function pay(): void
    {
    }
}

class Heir extends Locked
{
}

#[WithLock('twice')]
class Twice
{
    #[WithLock('constructor')]
    public function __construct()
    {
    }

    public function own(): void
    {
    }
}

trait OwnTrait
{
    #[WithLock('trait')]
    public function ofTrait(): void
    {
    }
}

#[WithLock('all')]
class OfAll extends Locked
{
    use OwnTrait {
        ofTrait as renamed;
    }

    public function __construct()
    {
    }

    public function own(): void
    {
    }

    public static function make(): void
    {
    }
}

class OnlyMade
{
    #[WithLock('constructor')]
    public function __construct()
    {
    }
}

#[WithLock('suit')]
enum Suit
{
    case Hearts;

    public function label(): void
    {
    }
}

#[WithLock('php')]
class OfPhp extends \ArrayObject
{
    public function own(): void
    {
    }
}

class LessThanItsParent extends OfAll
{
    public function __construct()
    {
    }

    public function own(): void
    {
    }

    public function more(): void
    {
    }

    #[WithLock('pay')]
    public function pay(): void
    {
    }
}
