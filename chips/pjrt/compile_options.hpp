#pragma once
/// CompileOptions: the options that a plug-in gets with a program.

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace weft::pjrt {

/// The value of a flag of XLA. The plug-in returns an error if the value doesn't have the flag's
/// type.
using FlagValue = std::variant<bool, std::int64_t, double, std::string>;
using CompileFlags = std::map<std::string, FlagValue>;

struct CompileOptions {
  /// The ids of the devices, one for each replica of the program. Without ids, the program has one
  /// replica, and each launch names the device.
  std::vector<int> devices{};
  CompileFlags flags{};

  /// Returns the options as a serialized CompileOptionsProto of XLA. The number of replicas is
  /// always set, because plug-ins abort the process without it.
  std::string bytes() const;
};

}  // namespace weft::pjrt
