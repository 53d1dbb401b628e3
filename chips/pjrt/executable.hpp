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

/// An executable keeps its client alive. Any thread may launch it.
class Executable {
 public:
  /// Takes the plug-in's executable.
  Executable(std::shared_ptr<const Client> client, void* loaded);
  Executable(Executable&& other) noexcept;
  Executable& operator=(Executable&&) = delete;
  ~Executable();

  std::size_t num_outputs() const { return num_outputs_; }
  /// Launches the program, which has one replica, on a device. Some plug-ins return when the run
  /// has ended, and some at once. The number, dtypes and shapes of the arguments must be those of
  /// the program, because plug-ins check nothing but sizes in bytes. `kept` has the arguments that
  /// the run must not take for its results. `device` is null for a program that was compiled for a
  /// device. `context` is that of its foreign calls (foreign_calls.hpp). Throws PluginError.
  LaunchedRun launch(std::span<void* const> arguments, std::span<const std::int64_t> kept = {},
                     void* device = nullptr, void* context = nullptr) const;
  /// Returns the bytes from which Client::load() makes it again.
  std::string serialize() const;
  /// Launches a program of several replicas on the devices for which it was compiled, in one call,
  /// because the replicas meet. Row i of `arguments` is for replica i, and so is result i. `kept`
  /// and `context` are as for launch(), for all replicas.
  std::vector<LaunchedRun> launch_replicas(std::span<const std::vector<void*>> arguments,
                                           std::span<const std::int64_t> kept = {},
                                           void* context = nullptr) const;
  /// Returns the bytes of a run's temporaries on a device; nothing if the plug-in doesn't say.
  std::optional<std::int64_t> temporary_bytes() const;

 private:
  explicit Executable(std::shared_ptr<const Client> client);
  /// The rows of a launch, with one entry for each device.
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
