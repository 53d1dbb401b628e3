# Finds the C++ Actor Framework: 1.x by its own files for CMake, else 0.17, whose package in Debian
# has none. -DCAF_ROOT=FOLDER names the folder where CAF is installed. Defines the targets
# CAF::core, CAF::io and CAF::openssl, each if its library exists, and the variable CAF_VERSION.

include(FindPackageHandleStandardArgs)
find_package(CAF CONFIG QUIET)
# g++ 12 warns of CAF's own code where it is inlined into ours, system header or not.
set(quiet $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>)
if(CAF_FOUND)
  find_package_handle_standard_args(CAF CONFIG_MODE)
  set_property(TARGET CAF::core APPEND PROPERTY INTERFACE_COMPILE_OPTIONS ${quiet})
  return()
endif()
find_package(Threads QUIET)

find_path(CAF_INCLUDE_DIR caf/config.hpp)
foreach(part core io openssl)
  find_library(CAF_${part}_LIBRARY caf_${part})
  mark_as_advanced(CAF_${part}_LIBRARY)
endforeach()
mark_as_advanced(CAF_INCLUDE_DIR)

# caf/config.hpp has `#define CAF_VERSION 1706` for 0.17.6.
if(CAF_INCLUDE_DIR)
  file(STRINGS ${CAF_INCLUDE_DIR}/caf/config.hpp number REGEX "^#define CAF_VERSION [0-9]+")
  string(REGEX MATCH "[0-9]+$" number "${number}")
  math(EXPR major "${number} / 10000")
  math(EXPR minor "${number} / 100 % 100")
  math(EXPR patch "${number} % 100")
  set(CAF_VERSION ${major}.${minor}.${patch})
endif()

find_package_handle_standard_args(CAF
  REQUIRED_VARS CAF_core_LIBRARY CAF_io_LIBRARY CAF_INCLUDE_DIR Threads_FOUND
  VERSION_VAR CAF_VERSION)

if(CAF_FOUND AND NOT TARGET CAF::core)
  foreach(part core io openssl)
    if(CAF_${part}_LIBRARY)
      add_library(CAF::${part} UNKNOWN IMPORTED)
      set_target_properties(CAF::${part} PROPERTIES
        IMPORTED_LOCATION ${CAF_${part}_LIBRARY}
        INTERFACE_INCLUDE_DIRECTORIES ${CAF_INCLUDE_DIR})
    endif()
  endforeach()
  target_link_libraries(CAF::core INTERFACE Threads::Threads)
  target_link_libraries(CAF::io INTERFACE CAF::core)
  if(TARGET CAF::openssl)
    target_link_libraries(CAF::openssl INTERFACE CAF::io)
  endif()
  target_compile_options(CAF::core INTERFACE ${quiet})
endif()
