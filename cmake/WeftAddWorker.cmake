# weft_add_worker(<app> LOOPS <source>... [LIBRARIES <target>...])
#
# Makes the program <app>-worker for an application that can't call weft::worker_main() first in its
# main(). LOOPS are the sources that define the application's weft::Loop variables. LIBRARIES are
# static libraries that define some; all their objects are linked, because the linker would drop
# objects to which nothing refers. The application gives the program's path to
# ScalingConfig::worker_executable. Both must be built from the same sources.
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
