--TEST--
The typed stub for editors says what the extension is
--EXTENSIONS--
redlock
--FILE--
<?php
$code = file_get_contents(__DIR__ . '/../lib/stubs/redlock.stub.php');
$code = str_replace(['<?php', "namespace {", 'namespace Redlock'], ['', "namespace Stub {", 'namespace Stub\Redlock'], $code);
eval($code);

function signature(ReflectionFunctionAbstract $f): string
{
    $attributes = fn ($p) => array_filter(array_map(fn ($a) => $a->getName(), $p->getAttributes()),
        class_exists(...)); // PHP 8.1 has no SensitiveParameter
    $parameters = array_map(fn ($p) => trim($p->getType() . ' $' . $p->getName() . ($p->isOptional() ? ' optional' : '')
        . ' ' . implode(',', $attributes($p))), $f->getParameters());
    $modifiers = $f instanceof ReflectionMethod ? implode(' ', Reflection::getModifierNames($f->getModifiers())) . ' ' : '';
    return str_replace('Stub\\', '', $modifiers . $f->getName() . '(' . implode(', ', $parameters) . '): ' . $f->getReturnType());
}

function properties(ReflectionClass $class): array
{
    $own = array_filter($class->getProperties(), fn ($p) => !$p->isPrivate() && !in_array($p->name, ['message', 'code', 'file', 'line']));
    $lines = array_map(fn ($p) => implode(' ', Reflection::getModifierNames($p->getModifiers())) . " {$p->getType()} \${$p->name} = "
        . json_encode($p->getDefaultValue()), $own);
    sort($lines);
    return $lines;
}

function describe(ReflectionClass $class): string
{
    $own = array_filter($class->getMethods(), fn ($m) => str_contains($m->class, 'Redlock'));
    $methods = array_map(signature(...), $own);
    sort($methods);
    $interfaces = array_diff(str_replace('Stub\\', '', $class->getInterfaceNames()), ['SWIG\wrapped']);
    sort($interfaces);
    $parent = $class->getParentClass() ? str_replace('Stub\\', '', $class->getParentClass()->name) : '';
    return json_encode([$class->isFinal(), $class->isInterface(), $parent, $interfaces, $methods, properties($class)], JSON_PRETTY_PRINT);
}

$extension = new ReflectionExtension('redlock');
$functions = array_map(fn ($name) => strtolower($name), array_keys($extension->getFunctions()));
$classes = array_keys($extension->getClasses());
$stubFunctions = array_map(fn ($f) => substr($f, 5), array_filter(get_defined_functions()['user'], fn ($f) => str_starts_with($f, 'stub\\')));
$stubClasses = array_map(fn ($c) => substr($c, 5), array_filter([...get_declared_classes(), ...get_declared_interfaces()], fn ($c) => str_starts_with($c, 'Stub\\')));
$all = get_defined_constants(true);
$constants = array_filter($all['redlock'], fn ($name) => $name !== 'CLASS_HOOK', ARRAY_FILTER_USE_KEY);
$stubConstants = [];
foreach ($all['user'] as $name => $value) {
    $stubConstants[preg_replace('/^stub\\\\/i', '', $name)] = $value;
}
foreach (array_intersect_key($constants, $stubConstants) as $name => $value) {
    echo $value === $stubConstants[$name] ? '' : "differs: $name is $value, not $stubConstants[$name]\n";
}
$names = [array_keys($constants), array_keys($stubConstants)];
foreach ([$names, [$functions, $stubFunctions], [$classes, $stubClasses]] as [$real, $stub]) {
    foreach (array_diff($real, $stub) as $name) {
        echo "not in the stub: $name\n";
    }
    foreach (array_diff($stub, $real) as $name) {
        echo "only in the stub: $name\n";
    }
}
foreach (array_intersect($functions, $stubFunctions) as $name) {
    [$real, $stub] = [signature(new ReflectionFunction($name)), signature(new ReflectionFunction("Stub\\$name"))];
    echo $real === $stub ? '' : "differs:\n  $real\n  $stub\n";
}
foreach (array_intersect($classes, $stubClasses) as $name) {
    [$real, $stub] = [describe(new ReflectionClass($name)), describe(new ReflectionClass("Stub\\$name"))];
    echo $real === $stub ? '' : "$name differs:\n$real\n$stub\n";
}
echo count($classes) > 10 && count($functions) >= 5 && count($constants) > 40 ? 'compared' : 'nothing to compare';
?>
--EXPECT--
compared
