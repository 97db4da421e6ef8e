mod build/php/redlock.so
mod debian/redlock.ini
