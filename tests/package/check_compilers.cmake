# Checks that a program which includes all of weft's public headers is accepted, without a warning,
# by the compiler OWN, and by each compiler that docs/using.md names and this machine has.

file(REAL_PATH ${OWN} compilers)
foreach(name g++-12 g++-13 g++-14 g++-15 clang++-16 clang++-17 clang++-18 clang++-19 clang++-20
        clang++-21 clang++-22)
  find_program(path_${name} ${name})
  if(path_${name})
    file(REAL_PATH ${path_${name}} path)
    list(APPEND compilers ${path})
  endif()
endforeach()
list(REMOVE_DUPLICATES compilers)

# The name under which clang is called decides whether it compiles C or C++.
foreach(compiler IN LISTS compilers)
  message(STATUS "${compiler}")
  execute_process(
    COMMAND ${compiler} -x c++ -std=c++20 -fsyntax-only -I${INCLUDE} -Wall -Wextra -Wpedantic
      -Wshadow -Wconversion -Werror ${SOURCE}
    COMMAND_ERROR_IS_FATAL ANY)
endforeach()
