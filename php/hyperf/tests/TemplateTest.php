<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Tests;

use PHPUnit\Framework\TestCase;
use Redlock\Exception\InvalidOptionException;
use Redlock\Hyperf\Template;

final class TemplateTest extends TestCase
{
    /** @dataProvider values */
    public function testATemplateIsFilledWithTheArguments(string $template, array $arguments, string $expected): void
    {
        $this->assertSame($expected, (new Template($template, 'Orders::pay'))->render($arguments));
    }

    public static function values(): array
    {
        $order = new class {
            public int $id = 42;
            private string $code = 'x9';

            public function getCode(): string
            {
                return $this->code;
            }
        };
        $text = new class {
            public function __toString(): string
            {
                return 'text';
            }
        };
        return [
            'none' => ['report', ['x' => 1], 'report'],
            'scalar' => ['order:#{id}', ['id' => 7], 'order:7'],
            'zero' => ['order:#{id}', ['id' => 0], 'order:0'],
            'twice' => ['#{a}-#{b}-#{a}', ['a' => 'x', 'b' => 'y'], 'x-y-x'],
            'property' => ['order:#{order.id}', ['order' => $order], 'order:42'],
            'getter' => ['order:#{order.code}', ['order' => $order], 'order:x9'],
            'key' => ['#{row.user.id}', ['row' => ['user' => ['id' => 3]]], '3'],
            'array access' => ['#{row.id}', ['row' => new \ArrayObject(['id' => 5])], '5'],
            'stringable' => ['#{text}', ['text' => $text], 'text'],
            'a dollar sign' => ['price:$1:#{id}', ['id' => '$0\\1'], 'price:$1:$0\\1'],
        ];
    }

    /** @dataProvider wrongs */
    public function testAnythingThatWouldShareAKeyIsAnError(string $template, array $arguments, string $words): void
    {
        $this->expectException(InvalidOptionException::class);
        $this->expectExceptionMessageMatches('/^Orders::pay, resource \'' . \preg_quote($template, '/') . '\'.*'
            . \preg_quote($words, '/') . '/');
        (new Template($template, 'Orders::pay'))->render($arguments);
    }

    public static function wrongs(): array
    {
        return [
            'null' => ['#{id}', ['id' => null], 'null'],
            'empty' => ['#{id}', ['id' => ''], "''"],
            'false' => ['#{id}', ['id' => false], 'bool'],
            'array' => ['#{id}', ['id' => [1]], 'array'],
            'object' => ['#{id}', ['id' => new \stdClass()], 'stdClass'],
            'missing key' => ['#{row.id}', ['row' => []], 'null'],
            'missing property' => ['#{row.id}', ['row' => new \stdClass()], 'null'],
            'into a scalar' => ['#{id.x}', ['id' => 5], 'int'],
            'into null' => ['#{id.x}', ['id' => null], 'looks for x in null'],
            'unknown' => ['#{oder}', ['order' => 1], 'no parameter $oder'],
            'malformed' => ['#{order-id}', ['order' => 1], 'placeholder'],
            'nothing' => ['', ['order' => 1], 'empty'],
        ];
    }
}
