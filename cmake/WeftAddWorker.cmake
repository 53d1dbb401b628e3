# weft_add_worker(<app> LOOPS <source>... [LIBRARIES <target>...])
#
# For an application that can't call weft::worker_main() first in its main(): makes the program
# <app>-worker of the sources that hold its weft::Loop variables, and of all objects of the static
# LIBRARIES that hold some, which the linker would drop as nobody refers to them. The application
# gives its path to ScalingConfig::worker_executable. Both have to be built of the same sources.
function(weft_add_worker app)
  cmake_parse_arguments(arg "" "" "LOOPS;LIBRARIES" ${ARGN})
  if(NOT arg_LOOPS AND NOT arg_LIBRARIES)
    message(FATAL_ERROR "weft_add_worker(${app}): give LOOPS, the sources with its weft::Loop "
      "variables, or LIBRARIES that have some")
  endif()
  set(main ${CMAKE_CURRENT_BINARY_DIR}/${app}-worker.cpp)
  file(CONFIGURE OUTPUT ${main} CONTENT
"#include <cstdio>

#include <weft/train/loop.hpp>

int main(int argc, char** argv) {
  weft::worker_main(argc, argv);
  std::fputs(\"${app}-worker is started by ${app}, for the workers of its jobs\\n\", stderr);
  return 64;
}
")
  add_executable(${app}-worker ${main} ${arg_LOOPS})
  target_link_libraries(${app}-worker PRIVATE weft::weft)
  foreach(library IN LISTS arg_LIBRARIES)
    target_link_libraries(${app}-worker PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,${library}>)
  endforeach()
endfunction()
