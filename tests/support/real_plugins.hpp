#pragma once
/// Finds the real PJRT plug-ins for CPUs that `tools/dev plugins` has got.

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "chips/pjrt/discovery.hpp"

namespace weft::testing {

/// Returns the plug-ins in the folder, the newest first. Each Python package has a folder of its
/// own. If WEFT_TEST_PLUGIN is set, only those whose path contains it are returned.
inline std::vector<pjrt::PluginFile> real_plugins(const std::string& folder = WEFT_PJRT_PLUGINS) {
  const std::string packages = folder + "/lammps-jax-pjrt-cpu:" + folder + "/xla-cpu-pjrt";
  std::vector<pjrt::PluginFile> plugins = pjrt::find_plugins([&](const char* name) {
    return std::string_view(name) == "PYTHONPATH" ? packages.c_str() : nullptr;
  });
  if (const char* asked = std::getenv("WEFT_TEST_PLUGIN")) {
    std::erase_if(plugins,
                  [&](const auto& plugin) { return plugin.path.find(asked) == std::string::npos; });
  }
  return plugins;
}

/// The reason for which a test that needs them is skipped.
inline constexpr const char* kNoRealPlugins =
    "there is no real PJRT plug-in; tools/dev plugins gets them";

}  // namespace weft::testing
