#pragma once
/// Finds the real PJRT plug-ins for CPUs that `tools/dev plugins` has got.

#include <filesystem>
#include <string>
#include <vector>

#include "chips/pjrt/discovery.hpp"

namespace weft::testing {

/// Returns the plug-ins in the folder, in which each Python package has a folder of its own.
inline std::vector<pjrt::PluginFile> real_plugins(const std::string& folder = WEFT_PJRT_PLUGINS) {
  std::string packages;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    packages += (packages.empty() ? "" : ":") + entry.path().string();
  }
  return pjrt::find_plugins([&](const char* name) {
    return std::string_view(name) == "PYTHONPATH" ? packages.c_str() : nullptr;
  });
}

/// The reason for which a test that needs them is skipped.
inline constexpr const char* kNoRealPlugins =
    "there is no real PJRT plug-in; tools/dev plugins gets them";

}  // namespace weft::testing
