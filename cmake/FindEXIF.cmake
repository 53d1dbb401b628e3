# Finds libexif and defines the target EXIF::exif. Debian's package has no file for CMake.

include(FindPackageHandleStandardArgs)

find_path(EXIF_INCLUDE_DIR libexif/exif-data.h)
find_library(EXIF_LIBRARY exif)
mark_as_advanced(EXIF_INCLUDE_DIR EXIF_LIBRARY)
find_package_handle_standard_args(EXIF REQUIRED_VARS EXIF_LIBRARY EXIF_INCLUDE_DIR)

if(EXIF_FOUND AND NOT TARGET EXIF::exif)
  add_library(EXIF::exif UNKNOWN IMPORTED)
  set_target_properties(EXIF::exif PROPERTIES
    IMPORTED_LOCATION ${EXIF_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${EXIF_INCLUDE_DIR})
endif()
