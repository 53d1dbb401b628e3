#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <vector>

#include <weft/tensor/error.hpp>
#include <weft/train/loop.hpp>

#include "actors/process/elf_object.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgram = "weft-worker";

/// Returns the paths at which to look for weft-worker: beside weft's library if that is shared,
/// where weft was installed or built, and in PATH.
std::vector<fs::path> candidates() {
  std::vector<fs::path> found;
  if (const auto own = object_of(reinterpret_cast<const void*>(&plugin_worker))) {
    if (!own->path.empty())
      found.push_back(fs::path(own->path).parent_path() / "../bin" / kProgram);
  }
  for (const char* folder : {WEFT_INSTALLED_PROGRAMS, WEFT_BUILT_PROGRAMS}) {
    found.push_back(fs::path(folder) / kProgram);
  }
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (!folder.empty()) found.push_back(fs::absolute(folder) / kProgram);
  }
  return found;
}

}  // namespace

std::string plugin_worker() {
  std::string looked;
  for (const fs::path& candidate : candidates()) {
    std::error_code none;
    if (fs::is_regular_file(candidate, none)) return fs::weakly_canonical(candidate).string();
    looked += (looked.empty() ? "" : ", ") + candidate.string();
  }
  fail(Errc::not_found,
       "there is no {}: looked for {}; install weft's programs, or give "
       "scaling.worker_executable its path",
       kProgram, looked);
}

}  // namespace weft
