# Defines weft::weft and weft::shared, and installs the files that find_package(weft) needs.

include(CMakePackageConfigHelpers)
include(WeftPrivateCaf)

add_library(weft_weft INTERFACE)
add_library(weft::weft ALIAS weft_weft)
set_target_properties(weft_weft PROPERTIES EXPORT_NAME weft)
get_property(libraries GLOBAL PROPERTY WEFT_LIBRARIES)
target_link_libraries(weft_weft INTERFACE ${libraries})
# With this option, the stack of a worker that hangs has the names of its functions.
target_link_options(weft_weft INTERFACE -rdynamic)
install(TARGETS weft_weft EXPORT weft)

# libweft.so is one copy of weft for all plug-ins of a process. It exports namespace weft, and also
# __cxa_throw, by which weft records where exceptions are thrown.
set(exports ${PROJECT_SOURCE_DIR}/cmake/libweft.map)
list(TRANSFORM libraries REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
add_library(weft_shared SHARED)
add_library(weft::shared ALIAS weft_shared)
set_target_properties(weft_shared PROPERTIES
  EXPORT_NAME shared OUTPUT_NAME weft LINKER_LANGUAGE CXX
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
weft_private_caf(weft_shared ${objects})
set_property(TARGET weft_shared APPEND PROPERTY LINK_DEPENDS ${exports})
# libweft.so already has all objects of these archives. Linking them only adds the libraries on
# which they depend.
target_link_libraries(weft_shared PRIVATE ${libraries} weft_options
  INTERFACE fmt::fmt nlohmann_json::nlohmann_json)
target_link_options(weft_shared PRIVATE -Wl,--version-script=${exports} -Wl,--build-id
  INTERFACE -rdynamic)
target_compile_features(weft_shared INTERFACE cxx_std_20)
target_include_directories(weft_shared INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(TARGETS weft_shared EXPORT weft)

install(DIRECTORY include/weft DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weft)
string(REGEX MATCH "^[0-9]+\\.[0-9]+" caf_series "${CAF_VERSION}")
configure_package_config_file(cmake/weftConfig.cmake.in ${PROJECT_BINARY_DIR}/weftConfig.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
# Before version 1.0, a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/weftConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/weftConfig.cmake ${PROJECT_BINARY_DIR}/weftConfigVersion.cmake
  cmake/FindCAF.cmake cmake/FindDNNL.cmake cmake/FindEXIF.cmake cmake/FindWebP.cmake
  cmake/WeftAddWorker.cmake DESTINATION ${package_dir})
install(EXPORT weft NAMESPACE weft:: FILE weftTargets.cmake DESTINATION ${package_dir})
