# Defines the options that all targets share (include folders, language, warnings, sanitizers), and
# the functions that define targets.

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_CXX_EXTENSIONS OFF)

include(${CMAKE_CURRENT_LIST_DIR}/WeftAddWorker.cmake)

add_library(weft_options INTERFACE)
# Sources of the tree include internal headers as "floor/room/name.hpp". Programs include only
# public headers, <weft/subject/name.hpp>.
target_include_directories(weft_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(weft_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
# Inline functions of classes aren't exported, so a program has 8,000 dynamic symbols instead of
# 15,000, and starts a tenth sooner.
target_compile_options(weft_options INTERFACE -fvisibility-inlines-hidden)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # The compiler collects its garbage later. It needs 250 MB more, and an eighth less time.
  target_compile_options(weft_options INTERFACE --param=ggc-min-heapsize=524288)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)  # it includes -Wsign-conversion there
  target_compile_options(weft_options INTERFACE -Wno-sign-conversion -Wno-unknown-warning-option)
endif()
if(WEFT_WERROR)
  target_compile_options(weft_options INTERFACE -Werror)
endif()
if(WEFT_SANITIZE)
  target_compile_options(weft_options INTERFACE -fsanitize=${WEFT_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(weft_options INTERFACE -fsanitize=${WEFT_SANITIZE})
  if(WEFT_SANITIZE MATCHES thread)
    target_compile_definitions(weft_options INTERFACE WEFT_THREAD_SANITIZER)
  endif()
  # These three checks take a third of the compile time, see decision 0038.
  if(WEFT_SANITIZE MATCHES undefined)
    target_compile_options(weft_options INTERFACE -fno-sanitize=null,object-size,vptr)
  endif()
endif()

# Debian's cpp-httplib is compiled with TLS, and the layout of its classes depends on that. Its
# headers call OpenSSL themselves.
add_library(weft_httplib INTERFACE)
target_link_libraries(weft_httplib INTERFACE cpp-httplib OpenSSL::SSL OpenSSL::Crypto)
target_compile_definitions(weft_httplib INTERFACE CPPHTTPLIB_OPENSSL_SUPPORT)

# tests-<label> builds the tests of a label that `tools/dev test` or a sanitizer preset runs, and
# nothing else.
if(WEFT_DEVELOPER)
  foreach(label unit fit property conformance floors fuzz)
    add_custom_target(tests-${label})
  endforeach()
endif()

# weft_unite(<target>) compiles the target's sources of each folder as one source, so that headers
# are parsed once. WEFT_UNITY=OFF turns it off. A source with options of its own is compiled alone,
# and sources with a UNITY_GROUP of their own are one source.
function(weft_unite target)
  if(NOT WEFT_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    get_source_file_property(group ${source} UNITY_GROUP)
    if(NOT group)
      cmake_path(GET source PARENT_PATH folder)
      string(MAKE_C_IDENTIFIER "${target}/${folder}" group)
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
    endif()
  endforeach()
  # g++ would warn about a class with a member whose type is local to its source.
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

# weft_test_options(<target>) turns optimization off, because compiling the tests takes longer than
# running them.
function(weft_test_options target)
  target_compile_options(${target} PRIVATE -O0)
endfunction()

# weft_library(<name> SOURCES ... LIBRARIES ... PRIVATE_LIBRARIES ...) adds the library weft_<name>
# with the alias weft::<name>. It is part of the installed package.
function(weft_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES;PRIVATE_LIBRARIES" ${ARGN})
  add_library(weft_${name} STATIC ${arg_SOURCES})
  add_library(weft::${name} ALIAS weft_${name})
  set_target_properties(weft_${name} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON)
  target_compile_features(weft_${name} PUBLIC cxx_std_20)
  target_include_directories(weft_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(weft_${name} PUBLIC ${arg_LIBRARIES} PRIVATE ${arg_PRIVATE_LIBRARIES}
    $<BUILD_INTERFACE:weft_options>)
  weft_unite(weft_${name})
  install(TARGETS weft_${name} EXPORT weft)
  set_property(GLOBAL APPEND PROPERTY WEFT_LIBRARIES weft_${name})
endfunction()

# weft_program(<name> SOURCES ... LIBRARIES ...) adds an executable in bin/.
function(weft_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} weft_options)
endfunction()

# weft_test(<name> LABELS ... SOURCES ... LIBRARIES ... [TIMEOUT s] [SHARDS n]) adds a GoogleTest
# program and its ctest. With SHARDS it adds n ctests <name>.<i>, and the time limit holds for each.
# The program may use those sources of tests/support whose own libraries are among its LIBRARIES. A
# test with the label `caf` runs actors. ThreadSanitizer has no such tests, because Debian's CAF
# isn't instrumented and its atomics would be reported as races. A test with the label `pure` has no
# threads. ThreadSanitizer has no such tests; to save time, other sanitizers have them only if
# WEFT_SANITIZE_PURE is on.
function(weft_test name)
  cmake_parse_arguments(arg "" "TIMEOUT;SHARDS" "LABELS;SOURCES;LIBRARIES" ${ARGN})
  if(WEFT_SANITIZE MATCHES thread AND ("caf" IN_LIST arg_LABELS OR "pure" IN_LIST arg_LABELS))
    return()
  endif()
  if(WEFT_SANITIZE AND "pure" IN_LIST arg_LABELS AND NOT WEFT_SANITIZE_PURE)
    return()
  endif()
  weft_program(${name} SOURCES ${arg_SOURCES}
    LIBRARIES weft_test_support ${arg_LIBRARIES} GTest::gtest_main)
  weft_test_options(${name})
  target_precompile_headers(${name} REUSE_FROM weft_test_headers)
  weft_unite(${name})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  if(NOT arg_SHARDS)
    set(arg_SHARDS 1)
  endif()
  math(EXPR last "${arg_SHARDS} - 1")
  foreach(shard RANGE ${last})
    set(test ${name})
    set(environment "")
    if(arg_SHARDS GREATER 1)
      set(test ${name}.${shard})
      set(environment "GTEST_TOTAL_SHARDS=${arg_SHARDS}" "GTEST_SHARD_INDEX=${shard}")
    endif()
    if(WEFT_SANITIZE)  # fewer random cases, because each takes five times as long
      list(APPEND environment "WEFT_TEST_TIMES=0.25" "WEFT_TEST_JOBS=3")
    endif()
    add_test(NAME ${test} COMMAND ${name})
    set_tests_properties(${test} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT}
      ENVIRONMENT "${environment}")
  endforeach()
  weft_built_with(${name} ${arg_LABELS})
endfunction()

# weft_built_with(<target> <label>...) makes the target a part of tests-<label>.
function(weft_built_with target)
  foreach(label IN LISTS ARGN)
    if(TARGET tests-${label})
      add_dependencies(tests-${label} ${target})
    endif()
  endforeach()
endfunction()
