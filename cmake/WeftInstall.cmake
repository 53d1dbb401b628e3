# weft::weft, and what find_package(weft) needs from an install tree.

include(CMakePackageConfigHelpers)

add_library(weft_weft INTERFACE)
add_library(weft::weft ALIAS weft_weft)
set_target_properties(weft_weft PROPERTIES EXPORT_NAME weft)
get_property(libraries GLOBAL PROPERTY WEFT_LIBRARIES)
target_link_libraries(weft_weft INTERFACE ${libraries})
# So that the stack of a worker that hangs has names.
target_link_options(weft_weft INTERFACE -rdynamic)
install(TARGETS weft_weft EXPORT weft)

# Headers that say caf:: stay here: users of the library don't need CAF's.
install(DIRECTORY spmd transport actors DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weft
  FILES_MATCHING PATTERN "*.hpp"
  PATTERN "*_actor.hpp" EXCLUDE PATTERN "messages.hpp" EXCLUDE PATTERN "system.hpp" EXCLUDE)
install(FILES weft.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weft)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weft)
configure_package_config_file(cmake/weftConfig.cmake.in ${PROJECT_BINARY_DIR}/weftConfig.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/weftConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/weftConfig.cmake ${PROJECT_BINARY_DIR}/weftConfigVersion.cmake
  cmake/FindCAF.cmake cmake/FindDNNL.cmake cmake/WeftAddWorker.cmake DESTINATION ${package_dir})
install(EXPORT weft NAMESPACE weft:: FILE weftTargets.cmake DESTINATION ${package_dir})
