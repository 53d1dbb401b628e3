#pragma once
/// Asks a PJRT plug-in for its devices.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chips/pjrt/discovery.hpp"

namespace weft {

struct ReportedDevice {
  int id = 0;
  std::string kind{};  ///< the plug-in's name for the kind of chip
  std::optional<std::int64_t> used_bytes{};
  std::optional<std::int64_t> limit_bytes{};
};

/// The description that a plug-in gives of itself, or the reason why it can't be used.
struct PluginReport {
  std::string platform{};
  std::string version{};  ///< the version of the plug-in's platform
  std::string api{};      ///< the version of the PJRT interface, such as "0.81"
  std::vector<ReportedDevice> devices{};
  std::string error{};  ///< "" if the plug-in can be used
};

/// Loads the plug-in in a process of its own, because a plug-in may end its process, or wait for a
/// device that another process uses. The process is killed after `limit`. The calling process must
/// have no client of a plug-in.
PluginReport report_of(const pjrt::PluginFile& file, std::chrono::milliseconds limit);

}  // namespace weft
