# Configures the project SOURCE in the folder WORK, which it empties first, with the arguments
# OPTIONS for CMake, builds its targets BUILD, and builds and runs its programs TARGETS. INSTALL, a
# build folder, is installed for the project to find. WEFT_TEST_EMBEDDED=whole in the environment
# also runs the programs WHOLE. The folders of the programs' jobs are in WORK, which is their HOME.

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${WORK})
if(INSTALL)
  execute_process(COMMAND ${CMAKE_COMMAND} --install ${INSTALL} --prefix ${WORK}/prefix
    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  list(APPEND OPTIONS -DCMAKE_PREFIX_PATH=${WORK}/prefix)
endif()
run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE} -B ${WORK}/build ${OPTIONS})
foreach(target IN LISTS BUILD)
  run(${CMAKE_COMMAND} --build ${WORK}/build --target ${target})
endforeach()
if("$ENV{WEFT_TEST_EMBEDDED}" STREQUAL whole)
  list(APPEND TARGETS ${WHOLE})
endif()
foreach(target IN LISTS TARGETS)
  run(${CMAKE_COMMAND} --build ${WORK}/build --target ${target})
  file(GLOB_RECURSE program ${WORK}/build/${target})
  run(${CMAKE_COMMAND} -E env HOME=${WORK} ${program})
endforeach()
