#pragma once
/// DeviceLink: lets a worker's loop send plans, runs and calls to a device, and wait for the
/// device.

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <weft/inspect/metrics.hpp>

#include "chips/engine/engine.hpp"
#include "chips/engine/loaded_rows.hpp"

namespace weft {

/// A message that loads `plan` into the device. Runs use the number `program` to name the plan.
struct DeviceLoad {
  std::uint32_t program = 0;
  std::shared_ptr<const Plan> plan;
  bool checks = false;  ///< load it with checks; see Engine::load()
  std::string site{};   ///< the call that needs the plan: "the sync at train.cpp:41"
};

/// One run of a plan. Runs are numbered 1, 2, ..., and a device executes them in that order.
struct DeviceRun {
  std::uint32_t program = 0;
  std::uint64_t run = 0;
  std::uint64_t step = 0;
  std::uint64_t fingerprint = 0;  ///< the program's fingerprint, for the black box
  RunCommit commit{};
  std::vector<RunBuffers> buffers;    ///< by the chip's index in the worker
  std::shared_ptr<StateHash> hash{};  ///< each chip adds its state before the run; usually null
  FaultyItem faulty_item{};           ///< null if no input is from a loader
};

/// One on_each_chip() call. Calls and runs of plans are numbered together. `body` must live until
/// the call is complete.
struct DeviceCall {
  std::uint32_t program = 0;
  std::uint64_t run = 0;
  std::uint64_t step = 0;
  const std::function<void(Chip&)>& body;
};

/// A function that receives the failure that ended a device's work, and the step of the failure.
using DeviceFailed = std::function<void(std::exception_ptr, std::uint64_t step)>;

/// Counts the runs that a device has completed. The device's thread updates the count, and the
/// loop's thread waits for runs.
class DeviceProgress {
 public:
  /// `on_failure` is called at most once, on the device's thread.
  explicit DeviceProgress(DeviceFailed on_failure) : on_failure_(std::move(on_failure)) {}

  void complete(std::uint64_t run);
  void fail(std::exception_ptr failure, std::uint64_t step);
  bool failed() const { return completed_.load(std::memory_order_acquire) == kFailed; }

  /// Waits until run number `run` is complete. Throws the device's failure.
  void wait(std::uint64_t run) const;

  /// Records the seconds that a run took, and the seconds that the device was idle before.
  void record(double ran, double idle);
  struct Times {
    MetricData ran;
    MetricData idle;
  };
  Times times() const;

 private:
  static constexpr std::uint64_t kFailed = ~std::uint64_t{0};
  /// The last completed run, or kFailed. Its release store publishes everything that the run has
  /// written to the arena, or failure_.
  std::atomic<std::uint64_t> completed_{0};
  std::exception_ptr failure_;
  mutable std::mutex times_mutex_;
  Times times_;
  DeviceFailed on_failure_;
};

/// The destructor ends the device's actor and waits for its thread.
class DeviceLink {
 public:
  virtual ~DeviceLink() = default;
  virtual void load(std::shared_ptr<const DeviceLoad> load) = 0;
  virtual void run(std::shared_ptr<const DeviceRun> run) = 0;
  virtual void call(std::shared_ptr<const DeviceCall> call) = 0;
  virtual const DeviceProgress& progress() const = 0;
  /// Gives access to the chip's memory. Plans and calls don't use it, but are sent to the actor.
  virtual Engine& engine() = 0;
};

}  // namespace weft
