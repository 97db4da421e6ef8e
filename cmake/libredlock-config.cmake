include(CMakeFindDependencyMacro)
find_dependency(Threads)

# Only libredlock::libredlock_static needs hiredis at link time.
find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND AND NOT TARGET PkgConfig::HIREDIS)
  pkg_check_modules(HIREDIS QUIET IMPORTED_TARGET hiredis)
endif()

include(${CMAKE_CURRENT_LIST_DIR}/libredlock-targets.cmake)
