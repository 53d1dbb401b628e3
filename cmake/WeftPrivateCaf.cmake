# weft_private_caf(<target> <objects>...) adds to a shared library its objects and a copy of CAF
# that no other library of a process can reach or disturb (decision 0093). `objects` are those of
# weft's libraries.
#
# The library's objects that use CAF, and copies of CAF's shared libraries, have the namespace `wcf`
# instead of `caf`. If CAF is a static library, it becomes a part of the shared library, and the
# version script hides it.
find_package(CAF REQUIRED)

function(weft_private_caf target)
  set(objects ${ARGN})
  get_target_property(kind CAF::core TYPE)
  if(kind STREQUAL STATIC_LIBRARY)
    target_sources(${target} PRIVATE ${objects})
    return()
  endif()
  list(TRANSFORM objects REPLACE "(.+)" "$<FILTER:\\1,EXCLUDE,weft_actors_caf>")

  set(folder ${CMAKE_BINARY_DIR}/lib)
  set(renamed_folder ${CMAKE_BINARY_DIR}/private_caf)
  set(used "$<FILTER:$<TARGET_OBJECTS:weft_actors_caf>,EXCLUDE,gch$>")
  get_target_property(sources weft_actors_caf SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(GET source FILENAME name)
    list(APPEND renamed ${renamed_folder}/${name}${CMAKE_CXX_OUTPUT_EXTENSION})
  endforeach()
  set(copies ${folder}/libwcf_io.so ${folder}/libwcf_core.so)
  add_custom_command(OUTPUT ${renamed} ${copies}
    COMMAND private_caf ${folder} $<TARGET_FILE:CAF::io> $<TARGET_FILE:CAF::core>
    COMMAND private_caf ${renamed_folder} "${used}"
    DEPENDS private_caf "${used}"
    COMMAND_EXPAND_LISTS VERBATIM
    COMMENT "Copying CAF under another name")
  set_source_files_properties(${renamed} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  target_sources(${target} PRIVATE ${objects} ${renamed})
  # The archives of weft's libraries still name the original CAF, but nothing of it is used then.
  target_link_options(${target} PRIVATE -Wl,--as-needed)
  target_link_libraries(${target} PRIVATE ${copies})
  set_target_properties(${target} PROPERTIES
    LINK_DEPENDS "${copies}" BUILD_RPATH ${folder} INSTALL_RPATH $ORIGIN)
  install(DIRECTORY ${folder}/ DESTINATION ${CMAKE_INSTALL_LIBDIR}
    FILES_MATCHING PATTERN "libwcf_*.so.*")
endfunction()
