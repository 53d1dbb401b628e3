#pragma once
/// Gang: the chips of a process, and the runs that a plug-in launches on them.

#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <weft/sharding/device.hpp>
#include <weft/sharding/mesh.hpp>

#include "chips/accelerator/accelerator_plan.hpp"
#include "chips/accelerator/device_copies.hpp"
#include "chips/pjrt/foreign_calls.hpp"
#include "transport/job/job_memory.hpp"

namespace weft {

/// What a chip brings to a run.
struct GangPart {
  std::vector<DeviceCopies::Held> arguments;  ///< one for each of the program's
  std::vector<std::int64_t> kept;  ///< arguments that the run must not take for its results
};

/// A run on one chip, or on all chips of the gang. Each of its chips holds it until the chip's part
/// has ended.
class GangRun final : public pjrt::ForeignReceiver {
 public:
  explicit GangRun(std::shared_ptr<const AcceleratorPlan> plan) : plan_(std::move(plan)) {}

  /// Returns the exception of the first custom op that failed; null: none has. It says more than
  /// the plug-in's error.
  std::exception_ptr call_error() const;

  void on_collective(const pjrt::ForeignCall& call) override;
  void on_custom_op(const pjrt::ForeignCall& call) override;

 private:
  friend class Gang;

  const std::shared_ptr<const AcceleratorPlan> plan_;
  std::map<int, GangPart> parts_;  ///< by chip
  std::optional<pjrt::ForeignContext> context_{};
  std::map<int, pjrt::LaunchedRun> results_;  ///< by chip
  std::exception_ptr error_;                  ///< of the launch
  bool is_launched_ = false;
  mutable std::mutex call_mutex_;
  std::exception_ptr call_error_;
};

/// A program with collectives has a replica for each chip, and the plug-in needs all replicas in
/// one call. So each chip's thread brings its part, and the last one launches the run. A run that
/// has been launched ends by itself, because all of its chips have it. Chips bring the same
/// programs in the same order. Any thread may use a gang.
class Gang {
 public:
  /// Returns the gang of the chips in `memory`, which lives as long as an engine has it. Throws the
  /// errors of accelerator_client().
  static std::shared_ptr<Gang> of(DeviceKind kind, const JobMemory& memory, const Mesh& mesh);
  Gang(std::shared_ptr<pjrt::Client> client, const Mesh& mesh);

  const pjrt::Client& client() const { return *client_; }
  const std::shared_ptr<pjrt::Client>& shared_client() const { return client_; }

  /// Compiles a program for all chips together or for any chip. Chips that have the same text
  /// compile it once.
  std::shared_ptr<const pjrt::Executable> compile(const std::string& text, bool meets);

  /// Brings a chip's part of its next run, and launches the run if no part is missing. `chip` is
  /// the chip's number in the memory, which is also that of its device.
  std::shared_ptr<GangRun> join(int chip, std::shared_ptr<const AcceleratorPlan> plan,
                                GangPart part);
  /// Waits until the run is launched, at most until the time. Returns a chip whose part is missing;
  /// nothing if the run is launched.
  std::optional<int> missing(const GangRun& run, std::chrono::steady_clock::time_point until);
  /// Waits until the chip's part of a launched run has ended, and returns its results. Throws the
  /// errors of custom ops and PluginError.
  std::vector<pjrt::Buffer> finish(GangRun& run, int chip);

 private:
  void launch(GangRun& run);
  void launch_parts(GangRun& run);

  const std::shared_ptr<pjrt::Client> client_;
  std::vector<int> chips_;  ///< by replica, which is the position in the mesh
  std::mutex compile_mutex_;
  std::map<std::string, std::weak_ptr<const pjrt::Executable>> compiled_;  ///< by text
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, std::uint64_t> joined_;                          ///< by chip: its runs
  std::map<std::uint64_t, std::shared_ptr<GangRun>> gathering_;  ///< runs that lack parts
};

}  // namespace weft
