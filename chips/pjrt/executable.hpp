#pragma once
/// Executable: a compiled program that a client's devices can run.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chips/pjrt/buffer.hpp"

namespace weft::pjrt {

struct ExecuteOptions;

/// A run that has been launched on one device.
struct LaunchedRun {
  std::vector<Buffer> outputs;
  Event done;
};

/// A program compiled by a plug-in. It keeps its client alive. Any thread may launch it.
class Executable {
 public:
  /// Takes ownership of `loaded`, which is the plug-in's loaded executable.
  Executable(std::shared_ptr<const Client> client, void* loaded);
  Executable(Executable&& other) noexcept;
  Executable& operator=(Executable&&) = delete;
  ~Executable();

  std::size_t num_outputs() const { return num_outputs_; }
  /// Launches a program of one replica. Some plug-ins return at once, others when the run has
  /// ended. The number, dtypes and shapes of the arguments must be those of the program, because
  /// plug-ins check only the sizes in bytes. `kept` lists the arguments whose buffers the run must
  /// not take for results. `device` must be null if the program was compiled for a certain device.
  /// `context` is the handle of the ForeignContext for the program's foreign calls
  /// (foreign_calls.hpp). Throws PluginError.
  LaunchedRun launch(std::span<void* const> arguments, std::span<const std::int64_t> kept = {},
                     void* device = nullptr, void* context = nullptr) const;
  /// Returns bytes from which Client::load() makes the executable again.
  std::string serialize() const;
  /// Launches a program of several replicas on the devices for which it was compiled. One call
  /// launches all replicas, because they wait for each other in collectives. Row i of `arguments`
  /// and element i of the returned vector belong to replica i. `kept` and `context` are as for
  /// launch(), and apply to all replicas.
  std::vector<LaunchedRun> launch_replicas(std::span<const std::vector<void*>> arguments,
                                           std::span<const std::int64_t> kept = {},
                                           void* context = nullptr) const;
  /// Returns the size of a run's temporaries on a device, in bytes, or nothing if the plug-in
  /// doesn't report it.
  std::optional<std::int64_t> temporary_bytes() const;

 private:
  explicit Executable(std::shared_ptr<const Client> client);
  /// The arguments, outputs and events of a launch, with one entry for each device.
  struct Rows {
    std::span<void* const* const> arguments;
    std::size_t argument_count;
    void** const* outputs;
    void** done_events;
  };
  void execute(ExecuteOptions* options, const Rows& rows, void* device) const;
  LaunchedRun run_of(std::span<void* const> outputs, void* done) const;

  std::shared_ptr<const Client> client_;
  void* loaded_ = nullptr;
  void* executable_ = nullptr;
  std::size_t num_outputs_ = 0;
};

}  // namespace weft::pjrt
