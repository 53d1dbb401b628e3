#pragma once
/// CompileOptions: what a plug-in is told beside a program, and its bytes.

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace weft::pjrt {

/// A flag of XLA has a type of its own. A value of another type is an error of the plug-in.
using FlagValue = std::variant<bool, std::int64_t, double, std::string>;
using CompileFlags = std::map<std::string, FlagValue>;

struct CompileOptions {
  /// The ids of the devices, one for each replica of the program. With none, one replica runs on
  /// any device: each run names its own.
  std::vector<int> devices{};
  CompileFlags flags{};

  /// Returns the bytes of XLA's CompileOptionsProto. They are never empty, because plug-ins end the
  /// process if they get no number of replicas.
  std::string bytes() const;
};

}  // namespace weft::pjrt
