#pragma once
/// Client: the devices that a plug-in drives in this process, and the programs compiled for them.

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chips/pjrt/buffer.hpp"
#include "chips/pjrt/compile_options.hpp"
#include "chips/pjrt/executable.hpp"
#include "chips/pjrt/plugin.hpp"

namespace weft::pjrt {

/// A device that this process can use.
struct ClientDevice {
  void* handle;
  int id;            ///< unique among the devices of all processes
  std::string kind;  ///< the plug-in's name of the device's model, such as "NVIDIA H100 80GB HBM3"
};

struct DeviceMemory {
  std::int64_t used_bytes;
  std::optional<std::int64_t> limit_bytes;  ///< absent if the plug-in doesn't report it
};

/// A function that writes a warning to the log.
using Warn = std::function<void(const std::string&)>;
/// Writes the warning to stderr, which a worker has in its log.
void warn_on_stderr(const std::string& text);

/// A connection to a plug-in's devices. Buffers, events and executables keep it alive. Any thread
/// may use it.
class Client : public std::enable_shared_from_this<Client> {
 public:
  /// Makes a client with the plug-in's options, such as {"cpu_device_count", 2}. Throws
  /// PluginError.
  static std::shared_ptr<Client> make(const Plugin& plugin, const CompileFlags& options, Warn warn);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();

  const Plugin& plugin() const { return plugin_; }
  const std::string& platform() const { return platform_; }  ///< such as "cpu", "cuda" or "tpu"
  const std::string& platform_version() const { return platform_version_; }
  const std::vector<ClientDevice>& devices() const { return devices_; }
  /// Returns the memory statistics of devices()[device], or nothing if the plug-in has none.
  std::optional<DeviceMemory> memory(std::size_t device) const;

  /// Sets a flag for all later compilations. compile() drops flags that the plug-in doesn't know.
  void set_flag(const std::string& name, FlagValue value);
  /// Returns the flags for the next compilation, without those that compile() has dropped.
  CompileFlags flags() const;
  /// Compiles StableHLO text with the client's flags, for the devices with the ids `devices`. If
  /// `devices` is empty, each launch chooses a device. A flag that the plug-in doesn't know is
  /// removed from the client, with one warning. Throws PluginError, with the plug-in's message, for
  /// text that the plug-in refuses.
  Executable compile(std::string_view text, const std::vector<int>& devices = {});
  /// Makes an executable from the bytes that Executable::serialize() returned for the same build of
  /// the plug-in. Throws PluginError for other bytes.
  Executable load(std::string_view bytes);

  /// Makes a buffer on devices()[device] from a row-major array. With `used_in_place`, the buffer
  /// uses the array's memory itself if that is aligned to 64 bytes. Otherwise some plug-ins copy
  /// the array without an error. Memory that is used in place must outlive the buffer, and also the
  /// result that a run writes there.
  Buffer from_host(std::size_t device, const void* data, ElementType type,
                   std::span<const std::int64_t> dims, HostMemory semantics) const;
  Buffer from_host(std::size_t device, const void* data, const TensorType& type,
                   HostMemory semantics) const;

 private:
  Client(const Plugin& plugin, Warn warn);
  void create(const CompileFlags& options);
  Executable compile_once(std::string_view text, const CompileOptions& options);

  const Plugin& plugin_;
  Warn warn_;
  void* handle_ = nullptr;
  std::string platform_{};
  std::string platform_version_{};
  std::vector<ClientDevice> devices_{};
  mutable std::mutex mutex_;
  CompileFlags flags_{};
};

}  // namespace weft::pjrt
