# What makes mistakes harder to exploit, in builds of type Release: each flag where compiler and linker know it and the
# user has not decided otherwise in CMAKE_C_FLAGS or CMAKE_SHARED_LINKER_FLAGS.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckLinkerFlag)
include(CheckPIESupported)

# A symbol of the cache for a flag.
function(redlock_name_of flag result)
  string(MAKE_C_IDENTIFIER "REDLOCK_HAS${flag}" name)
  set(${result} ${name} PARENT_SCOPE)
endfunction()

function(redlock_harden_compiler target flag chosen)
  redlock_name_of(${flag} has)
  if(NOT CMAKE_C_FLAGS MATCHES "${chosen}")
    check_c_compiler_flag(${flag} ${has})
    if(${has})
      target_compile_options(${target} INTERFACE ${flag})
    endif()
  endif()
endfunction()

function(redlock_harden_linker target flag chosen)
  redlock_name_of(${flag} has)
  if(NOT "${CMAKE_SHARED_LINKER_FLAGS} ${CMAKE_EXE_LINKER_FLAGS}" MATCHES "${chosen}")
    check_linker_flag(C ${flag} ${has})
    if(${has})
      target_link_options(${target} INTERFACE ${flag})
    endif()
  endif()
endfunction()

# Level 3 takes a compiler and a C library that know it; the library warns where it does not.
function(redlock_fortify target)
  if(CMAKE_C_FLAGS MATCHES "_FORTIFY_SOURCE")
    return()
  endif()
  foreach(level 3 2)
    set(CMAKE_REQUIRED_FLAGS "-O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${level}")
    check_c_source_compiles("#include <string.h>\nint main(void) { return (int)strlen(\"\"); }"
      REDLOCK_HAS_FORTIFY_${level})
    if(REDLOCK_HAS_FORTIFY_${level})
      target_compile_options(${target} INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${level})
      return()
    endif()
  endforeach()
endfunction()

# What links with target is hardened.
function(redlock_harden target)
  check_pie_supported()
  redlock_fortify(${target})
  redlock_harden_compiler(${target} -fstack-protector-strong "-f(no-)?stack-protector")
  redlock_harden_compiler(${target} -fstack-clash-protection "-f(no-)?stack-clash-protection")
  redlock_harden_compiler(${target} -fcf-protection "-fcf-protection")
  redlock_harden_linker(${target} -Wl,-z,relro "-z,(no)?relro")
  redlock_harden_linker(${target} -Wl,-z,now "-z,(now|lazy)")
endfunction()
