# Debian packages, by `./dev package debian`: the library, what programs are built with, the command, and the extension.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME libredlock)
set(CPACK_PACKAGE_VENDOR libredlock)
set(CPACK_PACKAGE_CONTACT "the libredlock developers <libredlock@users.noreply.github.com>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Redlock locks over N independent Redis or Valkey nodes")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime dev tools)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libredlock${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "Redlock locks over N Redis or Valkey nodes: the C library
 Takes locks that survive the death of a server, a slow network and a crash of their holder.")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS "libssl3 | libssl3t64")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/triggers)
file(WRITE ${PROJECT_BINARY_DIR}/triggers "activate-noawait ldconfig\n")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libredlock-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_DESCRIPTION "Redlock locks over N Redis or Valkey nodes: header, static library and manual
 For programs that are built with libredlock.")
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS
  "${CPACK_DEBIAN_RUNTIME_PACKAGE_NAME} (= ${PROJECT_VERSION}), libhiredis-dev")

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME redlock-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_TOOLS_DESCRIPTION "Redlock locks over N Redis or Valkey nodes: the command redlock
 Runs a command under a lock that a whole fleet shares, and examines the nodes.")
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "${CPACK_DEBIAN_RUNTIME_PACKAGE_NAME} (= ${PROJECT_VERSION})")

if(REDLOCK_PHP)
  execute_process(COMMAND ${PHP_CONFIG} --phpapi OUTPUT_VARIABLE php_api OUTPUT_STRIP_TRAILING_WHITESPACE)
  list(APPEND CPACK_COMPONENTS_ALL php)
  set(CPACK_DEBIAN_PHP_PACKAGE_NAME php-redlock)
  set(CPACK_DEBIAN_PHP_PACKAGE_SECTION php)
  set(CPACK_DEBIAN_PHP_DESCRIPTION "Redlock locks over N Redis or Valkey nodes: the PHP extension
 The library around it comes from Composer: libredlock/redlock.")
  set(CPACK_DEBIAN_PHP_PACKAGE_DEPENDS "phpapi-${php_api}, php-common")
  set(scripts ${PROJECT_BINARY_DIR}/debian-php)
  file(WRITE ${scripts}/postinst "#!/bin/sh\nset -e\n[ \"$1\" != configure ] || phpenmod redlock\n")
  file(WRITE ${scripts}/prerm "#!/bin/sh\nset -e\n[ \"$1\" != remove ] || phpdismod redlock\n")
  file(CHMOD ${scripts}/postinst ${scripts}/prerm PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ
    GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  set(CPACK_DEBIAN_PHP_PACKAGE_CONTROL_EXTRA ${scripts}/postinst ${scripts}/prerm)
endif()
include(CPack)
