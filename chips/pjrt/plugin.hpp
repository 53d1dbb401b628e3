#pragma once
/// Plugin: a PJRT plug-in that this process has loaded. PluginError: an error of a plug-in.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weft/sharding/device.hpp>
#include <weft/tensor/error.hpp>

#include "chips/pjrt/abi/abi.hpp"

namespace weft::pjrt {

/// The plug-in's code for a function that it lacks.
inline constexpr int kUnimplemented = 12;

/// An error that a plug-in returned. Its text has the plug-in's name and version, the function that
/// failed and the plug-in's message.
class PluginError final : public Error {
 public:
  PluginError(int status, const std::string& text, std::string words);

  /// The plug-in's error code, such as 3 (invalid argument), 8 (out of memory) or kUnimplemented.
  int status() const noexcept { return status_; }
  const std::string& words() const noexcept { return words_; }

 private:
  int status_;
  std::string words_;
};

/// A loaded plug-in. It is never unloaded, because its threads live as long as the process. Any
/// thread may use it. A process that has made a client (client.hpp) must not fork, because the
/// child would wait forever for locks that threads of the plug-in held at the fork.
class Plugin {
 public:
  /// The oldest and the newest minor version of the ABI with which weft was tested.
  static constexpr int kOldestTried = 81, kNewestTried = 115;
  /// Since this minor version, the ABI only gets additions. Older plug-ins are refused.
  static constexpr int kMinorMin = 57;

  /// Loads the plug-in of this file, or returns it if the process has loaded it before. Sets the
  /// variable TF_CPP_MIN_LOG_LEVEL, if it isn't set, to make XLA log less. Throws not_found if
  /// there is no such file, version if the plug-in is too old or has another major version, and
  /// unavailable if the file is for another kind of processor, isn't a plug-in, lacks libraries, or
  /// lacks a function that weft calls.
  static const Plugin& load(const std::string& path);
  /// Loads the first plug-in of this machine for devices of the kind (find_plugin()). Throws
  /// unavailable, with the command that installs a plug-in, if there is none.
  static const Plugin& load_for(DeviceKind kind);

  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  const std::string& path() const { return path_; }
  /// Returns text such as "XLA (pjrt_c_api_cpu_plugin.so)".
  std::string compiler() const;
  int minor() const { return api_->minor; }
  /// Returns text such as "the PJRT plug-in libtpu.so (API 0.81)".
  std::string name() const;
  /// Returns the plug-in's description of itself, such as {"xla_version", "2"}.
  const std::vector<std::pair<std::string, std::string>>& attributes() const { return attributes_; }

  template <typename Fields>
  bool has(const Function<Fields>& function) const {
    return address(function.offset()) != nullptr;
  }
  /// Calls the function. Throws PluginError with the plug-in's message, or with the status
  /// kUnimplemented if the plug-in lacks the function.
  template <typename Fields>
  void call(const Function<Fields>& function, Block<Fields>& arguments) const {
    call(function.offset(), function.name, &arguments);
  }
  /// Destroys an object. Ignores an error of the plug-in, because nothing can be done about it.
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
  /// Returns the plug-in's first extension of this type, or null.
  const Extension* extension(int type) const;
  /// If `error` isn't null, frees it and throws it as a PluginError. `function` is named in the
  /// text.
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
