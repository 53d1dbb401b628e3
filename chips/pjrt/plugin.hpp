#pragma once
/// Plugin: a PJRT plug-in that is loaded into this process, and its errors.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weft/tensor/error.hpp>

#include "chips/pjrt/abi/abi.hpp"

namespace weft::pjrt {

/// The code of a function that a plug-in lacks.
inline constexpr int kUnimplemented = 12;

/// An error of a plug-in. Its text names the plug-in, its version and the function, and has the
/// plug-in's words.
class PluginError final : public Error {
 public:
  PluginError(int status, const std::string& text, std::string words);

  /// The plug-in's own code, such as 3 for an invalid argument, 8 for too little memory, or
  /// kUnimplemented.
  int status() const noexcept { return status_; }
  const std::string& words() const noexcept { return words_; }

 private:
  int status_;
  std::string words_;
};

/// A plug-in. It is never unloaded, because its threads live as long as the process. Any thread may
/// use it. A process that has made a client (client.hpp) must not fork: the child would hang in
/// locks that threads of the plug-in hold.
class Plugin {
 public:
  /// The oldest and the newest minor version of the ABI with which weft has run.
  static constexpr int kOldestTried = 81, kNewestTried = 115;
  /// Since this version the ABI only appends. Older plug-ins are refused.
  static constexpr int kMinorMin = 57;

  /// Loads the plug-in of this file, or returns the one that the process has loaded from it. Sets
  /// variables of the environment that quiet XLA's log, unless they are set. Throws not_found if
  /// there is no such file; version if the plug-in is too old, or of another major version;
  /// unavailable if the file is for another kind of processor, isn't a plug-in, lacks libraries, or
  /// lacks a function that weft calls.
  static const Plugin& load(const std::string& path);

  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  const std::string& path() const { return path_; }
  int minor() const { return api_->minor; }
  /// Returns text such as "the PJRT plug-in libtpu.so (API 0.81)".
  std::string name() const;
  /// Returns what the plug-in says of itself, such as {"xla_version", "2"}.
  const std::vector<std::pair<std::string, std::string>>& attributes() const { return attributes_; }

  template <typename Fields>
  bool has(const Function<Fields>& function) const {
    return address(function.offset()) != nullptr;
  }
  /// Calls the function. Throws PluginError with the plug-in's words, or with status 12 if it lacks
  /// the function.
  template <typename Fields>
  void call(const Function<Fields>& function, Block<Fields>& arguments) const {
    call(function.offset(), function.name, &arguments);
  }
  /// Destroys an object. An error of the plug-in is ignored, because there is no remedy.
  template <typename Fields>
  void destroy(const Function<Fields>& function, void* object) const noexcept {
    struct Object {
      Head head;
      void* object;
    };
    Block<Object> arguments;
    arguments->object = object;
    ignore(function.offset(), &arguments);
  }
  /// Returns the first extension of the type; null if the plug-in has none.
  const Extension* extension(int type) const;
  /// Throws PluginError if `error` isn't null, and frees it. `function` is for the text.
  void check(void* error, std::string_view function) const;

 private:
  Plugin(std::string path, const Api* api);
  static const Api* open(const std::string& path);
  void refuse_unfit() const;
  void* address(std::size_t offset) const;
  void call(std::size_t offset, std::string_view name, void* arguments) const;
  void ignore(std::size_t offset, void* arguments) const noexcept;
  void destroy_error(void* error) const noexcept;

  std::string path_;
  const Api* api_;
  std::vector<std::pair<std::string, std::string>> attributes_;
};

}  // namespace weft::pjrt
