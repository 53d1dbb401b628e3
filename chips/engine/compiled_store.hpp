#pragma once
/// CompiledStore: a folder of files with compiled programs of a kind of chip.
///
///   file = envelope(key_bytes:u64 key compiled)        named by the key's XXH3

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "data/files/envelope.hpp"

namespace weft {

inline constexpr Format kCompiledFormat{"compiled program", "weftexec", 1};

/// Logs a faulty file or folder and continues, because a program can always be compiled again. A
/// file gets its name only when it is complete, so that several processes may share the folder. Any
/// thread may use a store.
class CompiledStore {
 public:
  /// A function that writes a line to the log.
  using Log = std::function<void(const std::string& line)>;

  CompiledStore() = default;  ///< stores nothing
  /// Makes `folder` when it stores the first file. With "", stores nothing.
  CompiledStore(std::string folder, Log debug);

  bool is_on() const { return !folder_.empty(); }
  /// Returns the compiled program that is stored under `key`, or nothing if there is no such file
  /// or it is damaged.
  std::optional<std::string> find(const std::string& key) const;
  /// Stores `compiled` under `key`, which must contain everything on which `compiled` depends.
  void keep(const std::string& key, std::string_view compiled) const;
  void say(const std::string& line) const { debug_(line); }

 private:
  std::string path(const std::string& key) const;

  std::string folder_{};
  Log debug_{};
};

}  // namespace weft
