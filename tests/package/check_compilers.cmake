# Checks that the programs SOURCE and REFUSED, which include weft's public headers, are accepted,
# without a warning, by the compiler OWN, and by each compiler that docs/using.md names and this
# machine has. The mistakes in REFUSED, which its definitions add, must get texts that name them.

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

set(hidden_endpoint "this function isn't an endpoint: add it to the actor's list")
set(too_many_fields "a message may have 16 fields; put some into a struct of their own")

# The name under which clang is called decides whether it compiles C or C++.
foreach(compiler IN LISTS compilers)
  message(STATUS "${compiler}")
  set(compile ${compiler} -x c++ -std=c++20 -fsyntax-only -I${INCLUDE} -Wall -Wextra -Wpedantic
    -Wshadow -Wconversion)
  foreach(program ${SOURCE} ${REFUSED})
    execute_process(COMMAND ${compile} -Werror ${program} COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  foreach(mistake HIDDEN_ENDPOINT=hidden_endpoint UNNAMED_FIELDS=too_many_fields
          NAMED_FIELDS=too_many_fields)
    string(REGEX MATCH "(.*)=(.*)" parts ${mistake})
    set(text "${${CMAKE_MATCH_2}}")
    execute_process(COMMAND ${compile} -D${CMAKE_MATCH_1} ${REFUSED} RESULT_VARIABLE result
      ERROR_VARIABLE said)
    string(FIND "${said}" "${text}" place)
    if(result EQUAL 0 OR place EQUAL -1)
      message(FATAL_ERROR "${compiler} -D${CMAKE_MATCH_1} ${REFUSED} ended with ${result}; "
        "expected an error with the text \"${text}\". It said:\n${said}")
    endif()
  endforeach()
endforeach()
