dnl The extension "redlock": the library's own sources and the generated bindings in one module.
PHP_ARG_ENABLE([redlock], [whether to enable redlock],
  [AS_HELP_STRING([--enable-redlock], [Enable distributed locks over several Redis nodes])])

PHP_ARG_WITH([redlock-hiredis], [which hiredis redlock uses],
  [AS_HELP_STRING([--with-redlock-hiredis=KIND],
    [bundled: the copy in a source archive (default where there is one); system: the one that pkg-config finds])],
  [auto], [no])

if test "$PHP_REDLOCK" != "no"; then
  redlock_here=$(cd "$srcdir" && pwd)
  redlock_core=$redlock_here/../core
  if test ! -f "$redlock_core/sources.txt"; then
    AC_MSG_ERROR([core/sources.txt is not beside the folder $redlock_here: build in a whole source tree of libredlock])
  fi
  if test ! -f "$redlock_here/redlock_wrap.c"; then
    AC_MSG_ERROR([redlock_wrap.c is not there: run python3 bindings/php_generate.py first, or use a source archive])
  fi

  redlock_third_party=$redlock_here/../third_party
  if test "$PHP_REDLOCK_HIREDIS" = "auto" || test "$PHP_REDLOCK_HIREDIS" = "yes"; then
    PHP_REDLOCK_HIREDIS=system
    if test -f "$redlock_third_party/hiredis/read.c"; then
      PHP_REDLOCK_HIREDIS=bundled
    fi
  fi
  case $PHP_REDLOCK_HIREDIS in
    bundled)
      if test ! -f "$redlock_third_party/hiredis/read.c"; then
        AC_MSG_ERROR([--with-redlock-hiredis=bundled: only source archives have a copy of hiredis, and this tree has none])
      fi
      PHP_ADD_INCLUDE([$redlock_third_party/hiredis])
      redlock_hiredis=$(cd "$redlock_third_party" && echo hiredis/*.c)
      ;;
    system)
      PKG_PROG_PKG_CONFIG
      PKG_CHECK_MODULES([HIREDIS], [hiredis >= 0.14.1 hiredis < 2], [],
        [AC_MSG_ERROR([hiredis (0.14.1 or newer, below 2) was not found by pkg-config: install libhiredis-dev])])
      PHP_EVAL_INCLINE([$HIREDIS_CFLAGS])
      PHP_EVAL_LIBLINE([$HIREDIS_LIBS], [REDLOCK_SHARED_LIBADD])
      redlock_hiredis=
      ;;
    *)
      AC_MSG_ERROR([--with-redlock-hiredis=$PHP_REDLOCK_HIREDIS: allowed are bundled and system])
      ;;
  esac
  PHP_ADD_LIBRARY([pthread],, [REDLOCK_SHARED_LIBADD])
  PHP_ADD_LIBRARY([m],, [REDLOCK_SHARED_LIBADD])
  PHP_ADD_LIBRARY([dl],, [REDLOCK_SHARED_LIBADD])

  dnl Objects in this folder: phpize can not compile ../core/src/x.c, it cuts the object's name at the first dot.
  redlock_sources="redlock_wrap.c $(tr '\n' ' ' <"$redlock_here/sources.txt")"
  for redlock_file in $(cat "$redlock_core/sources.txt"); do
    redlock_object=core_$(basename "$redlock_file")
    echo "#include \"../$redlock_file\"" > "$redlock_here/$redlock_object"
    redlock_sources="$redlock_sources $redlock_object"
  done
  for redlock_file in $redlock_hiredis; do
    redlock_object=hiredis_$(basename "$redlock_file")
    echo "#include \"../third_party/$redlock_file\"" > "$redlock_here/$redlock_object"
    redlock_sources="$redlock_sources $redlock_object"
  done

  dnl Nothing is visible but get_module, and the code stays mapped: the library has a fork handler and may have threads.
  LDFLAGS="$LDFLAGS -Wl,--version-script=$redlock_here/redlock.map -Wl,--exclude-libs,ALL -Wl,-z,nodelete -Wl,-z,now"
  PHP_NEW_EXTENSION([redlock], [$redlock_sources], [$ext_shared],,
    [-fvisibility=hidden -D_GNU_SOURCE -I$redlock_core/include])
  PHP_SUBST([REDLOCK_SHARED_LIBADD])
fi
