mod build/php/redlock.so
mod php/redlock.ini
