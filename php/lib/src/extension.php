<?php

declare(strict_types=1);

namespace Redlock;

/** The extension that this version of the library is written for. */
const EXTENSION_MINOR = '0.1';

if (!\extension_loaded('redlock')) {
    throw new \RuntimeException('libredlock/redlock needs the PHP extension redlock ' . EXTENSION_MINOR
        . ', which is not loaded: install it and add extension=redlock to php.ini');
}
if (!\str_starts_with(\redlock_version(), EXTENSION_MINOR . '.')) {
    throw new \RuntimeException('libredlock/redlock needs the PHP extension redlock ' . EXTENSION_MINOR
        . ', and ' . \redlock_version() . ' is loaded: install both in the same version');
}
