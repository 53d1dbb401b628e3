#pragma once
/// CompiledStore: keeps what the compiler of a kind of chip makes of programs, in a folder.
///
///   file = envelope(key_bytes:u64 key compiled)        named by the key's XXH3

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "data/files/envelope.hpp"

namespace weft {

inline constexpr Format kCompiledFormat{"compiled program", "weftexec", 1};

/// Every fault of a file or of the folder is a line for the log, because the program can always be
/// compiled again. Files get their names when they are whole, so that several processes may share
/// the folder. Any thread may use a store.
class CompiledStore {
 public:
  /// Takes lines for the log.
  using Log = std::function<void(const std::string& line)>;

  CompiledStore() = default;  ///< keeps nothing
  /// `folder` is made with the first file; "" keeps nothing.
  CompiledStore(std::string folder, Log debug);

  bool is_on() const { return !folder_.empty(); }
  /// Returns what was kept under this key; nothing if there is no such file, or if it is damaged.
  std::optional<std::string> find(const std::string& key) const;
  /// Keeps `compiled` under a key, which says everything on which it depends.
  void keep(const std::string& key, std::string_view compiled) const;
  void say(const std::string& line) const { debug_(line); }

 private:
  std::string path(const std::string& key) const;

  std::string folder_{};
  Log debug_{};
};

}  // namespace weft
