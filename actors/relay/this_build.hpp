#pragma once
/// build_of_this_program(): the id by which the hosts of an actor system check that all of them run
/// the same program.

#include <sys/auxv.h>

#include <string>

#include "actors/process/elf_object.hpp"

namespace weft {

/// Returns the build id of the executable.
inline std::string build_of_this_program() {
  const auto object = object_of(reinterpret_cast<const void*>(::getauxval(AT_ENTRY)));
  return object ? object->build : "";
}

}  // namespace weft
