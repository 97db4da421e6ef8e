# What `dev` and `tests/run` share: system packages, Python environments, builds. To be sourced at the top of the tree.

python=$PWD/build/venv/bin/python

fail() { echo "dev: $*" >&2; exit 2; }

# quietly NAME COMMAND...: its output goes to build/NAME.log; the end of that is shown if the command fails.
quietly() {
  local log=build/$1.log
  shift
  mkdir -p build
  if ! "$@" >>"$log" 2>&1 </dev/null; then
    tail -n 60 "$log" >&2
    fail "failed: $* (all of it: $log)"
  fi
}

# alone NAME COMMAND...: once no other process does something under that name; parts of the tests run side by side.
alone() {
  local lock=build/$1.lock
  shift
  mkdir -p build
  (flock 9 && "$@" 9>&-) 9>"$lock" || exit
}

# run_recorded JUNIT COMMAND...: leaves beside the JUnit file what tests/tools/late.py needs to run a case of it again:
# the command without its paths. If nothing but lateness has failed, that is decided there, and is no failure yet.
run_recorded() {
  local junit=$1 variable word status=0
  shift
  {
    printf '%s\0' env
    for variable in $(compgen -e); do
      case $variable in
        REDLOCK_* | ASAN_OPTIONS | TSAN_OPTIONS | LD_PRELOAD) printf '%s\0' "$variable=${!variable}" ;;
      esac
    done
    for word; do
      case $word in tests/*) ;; *) printf '%s\0' "$word" ;; esac
    done
  } >"${junit%.xml}.again"
  "$@" || status=$?
  if [ $status = 1 ] && env -u LD_PRELOAD python3 tests/tools/late.py "$junit"; then status=0; fi
  return $status
}

# ---- system packages: this is the only list -------------------------------------------------------------------

packages_of() {
  local group
  for group in "$@"; do
    case $group in
      build) echo cmake ninja-build gcc libc6-dev pkg-config libhiredis-dev libjansson-dev libpopt-dev libcmocka-dev \
        liblua5.1-0-dev libssl-dev python3 ;;
      pytest) echo python3 python3-venv ;;
      nodes) echo python3 redis-server ;;
      python) echo python3-dev gcc libc6-dev pkg-config libhiredis-dev libjansson-dev libpopt-dev locales ;;
      php) echo swig make php-cli php-dev ;;
      phpunit) echo php-fpm phpunit php-symfony-lock php-psr-event-dispatcher composer ;;
      languages) echo g++ clang ;;
      go) command -v go >/dev/null || echo golang-go ;;
      lint) echo clang git php-codesniffer $(packages_of go) ;;
      processes) echo procps ;;
      shells) echo zsh fish ;;
      monitoring) echo prometheus prometheus-node-exporter ;;
      manuals) echo lowdown mandoc ;;
      browser) echo chromium chromium-driver ;;
      abigail) echo abigail-tools gcc ;;
      valgrind | strace | openssl) echo "$group" ;;
      package) echo composer swig dpkg-dev debhelper dh-php git python3-dev php-dev $(packages_of build) ;;
      model) echo spin gcc tcc libc6-dev python3 ;;
      portability) echo dpkg-dev gcc-aarch64-linux-gnu gcc-s390x-linux-gnu gcc-i686-linux-gnu qemu-user ;;
      bare) echo debootstrap iproute2 systemd-container lintian musl-tools composer php-dev php-zip \
        $(packages_of monitoring) ;;
      *) fail "no group of packages '$group'" ;;
    esac
  done
}

missing_packages() {
  local package
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q ' installed$' || echo "$package"
  done
}

# need_packages GROUP...
need_packages() {
  local wanted
  wanted=$(packages_of "$@" | xargs -n 1 | sort -u)
  if ! command -v apt-get >/dev/null; then
    echo "dev: no apt-get here; these have to be installed already:" $wanted >&2
    return
  fi
  if [ -n "$(missing_packages $wanted)" ]; then alone apt install_packages $wanted; fi
}

install_packages() {
  local missing as_root=()
  mapfile -t missing < <(missing_packages "$@") # without those that another process has installed meanwhile
  [ ${#missing[@]} -gt 0 ] || return 0
  [ "$(id -u)" = 0 ] || as_root=(sudo)
  echo "== installing with apt-get: ${missing[*]}"
  quietly apt "${as_root[@]}" apt-get -o DPkg::Lock::Timeout=300 update
  quietly apt "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${missing[@]}"
}

# ---- Python environments --------------------------------------------------------------------------------------

# need_venv NAME REQUIREMENTS: made again when its pinned list changes.
need_venv() { alone "$1" make_venv "$@"; }

make_venv() {
  local venv=$1 requirements=$2
  cmp -s "$requirements" "build/$venv/requirements.txt" && return
  echo "== making the Python environment build/$venv"
  rm -rf "build/$venv"
  alone pip make_pip
  quietly "$venv" "${PYTHON:-python3}" -m venv --without-pip "build/$venv"
  cp -a build/pip/lib/python3*/site-packages/. "build/$venv"/lib/python3*/site-packages
  quietly "$venv" "build/$venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check \
    -r "$requirements"
  cp "$requirements" "build/$venv/requirements.txt"
}

# pip, installed once for all environments, by that which Python has or else brings: such are often old, and take twice
# the time to choose among wheels.
make_pip() {
  local before=("${PYTHON:-python3}" -m pip --python build/pip/bin/python)
  if [ -e build/pip/made ]; then return; fi
  rm -rf build/pip
  quietly pip "${PYTHON:-python3}" -m venv --without-pip build/pip
  if ! "${before[@]}" --version >/dev/null 2>&1; then
    quietly pip build/pip/bin/python -m ensurepip
    before=(build/pip/bin/python -m pip)
  fi
  quietly pip "${before[@]}" install --quiet --disable-pip-version-check pip==25.3 # runs on Python 3.9, too
  touch build/pip/made
}

need_pytest() { need_venv venv tests/requirements.txt; }

# need_package VENV REQUIREMENTS: the Python package as it is now, installed into an environment of its own.
need_package() {
  need_packages python pytest
  need_venv "$1" "$2"
  alone package install_package "$1"
}

install_package() {
  local venv=$1
  make_wheel "build/$venv/bin/python"
  if [ "build/$venv/installed" -nt build/wheel/made ]; then return; fi
  echo "== installing the Python package into build/$venv"
  quietly "$venv" "build/$venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check --no-deps \
    --force-reinstall build/wheel/*.whl
  touch "build/$venv/installed"
}

# make_wheel PYTHON: once for all environments; what builds it is in that of PYTHON.
make_wheel() {
  local made=build/wheel/made
  if [ -f "$made" ] && [ -z "$(find core bindings python setup.py pyproject.toml \
    -type f -not -name '*.pyc' -newer "$made" -print -quit)" ]; then return; fi
  echo "== making the wheel of the Python package"
  rm -rf build/wheel
  quietly wheel env CFLAGS=-g0 "$1" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
    --wheel-dir build/wheel .
  touch "$made"
}

need_tested_package() { need_package venv-python tests/python/requirements.txt; }

# ---- builds ---------------------------------------------------------------------------------------------------

# build PRESET [CMAKE-ARGUMENT...]; with `build_parts` only these targets of it
build() { alone "$1" configure_and_build "$@"; }

configure_and_build() {
  local preset=$1
  shift
  echo "== building build/$preset"
  : >"build/$preset.log"
  quietly "$preset" cmake --preset "$preset" "$@"
  quietly "$preset" cmake --build --preset "$preset" ${build_parts:+--target $build_parts}
}

# use_build PRESET [PRESET]: the second one has the command.
use_build() {
  export REDLOCK_BUILD_DIR=$PWD/build/$1
  export REDLOCK_LIBRARY=$REDLOCK_BUILD_DIR/libredlock.so
  export REDLOCK_BIN=$PWD/build/${2:-$1}/redlock
}

# The program that judges the soak's history.
need_judge() {
  need_packages go
  echo "== building build/judge"
  alone judge quietly judge env -C tests/judge go build -buildvcs=false -o ../../build/judge/judge .
}

# The library, and both bindings as they are now.
need_faces() {
  need_packages build pytest nodes php
  need_tested_package
  build testbuild
  build dev -DREDLOCK_PHP=ON
  use_build dev
}
