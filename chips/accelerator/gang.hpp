#pragma once
/// Gang: all chips of a process, and the runs that a plug-in launches on them.

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

/// A chip's arguments for a run.
struct GangPart {
  std::vector<DeviceCopies::Held> arguments;  ///< one for each argument of the program
  std::vector<std::int64_t> kept;  ///< arguments whose buffers the run must not take for results
};

/// A run on one chip, or on all chips of the gang. Each of these chips holds the GangRun until its
/// own part of the run has ended.
class GangRun final : public pjrt::ForeignReceiver {
 public:
  explicit GangRun(std::shared_ptr<const AcceleratorPlan> plan) : plan_(std::move(plan)) {}
  /// Waits for the end of the launched run, which uses this object.
  ~GangRun() override;

  /// Returns the exception of the first custom op that failed, or null. It is more precise than the
  /// plug-in's error.
  std::exception_ptr call_error() const;

  void on_collective(const pjrt::ForeignCall& call) override;
  void on_custom_op(const pjrt::ForeignCall& call) override;

 private:
  friend class Gang;

  const std::shared_ptr<const AcceleratorPlan> plan_;
  std::map<int, GangPart> parts_;  ///< key: the chip
  std::optional<pjrt::ForeignContext> context_{};
  std::map<int, pjrt::LaunchedRun> results_;  ///< key: the chip
  std::exception_ptr error_;                  ///< the exception of the launch
  bool is_launched_ = false;
  mutable std::mutex call_mutex_;
  std::exception_ptr call_error_;
};

/// The plug-in needs all replicas of a program with collectives in one call. Therefore each chip's
/// thread joins the run with its own part, and the last thread launches the run. Once launched, a
/// run ends by itself, because all its chips have joined. All chips must join with the same
/// programs in the same order. Any thread may use a gang.
class Gang {
 public:
  /// Returns the gang of the chips in `memory`. It lives as long as an engine holds it. Throws the
  /// errors of accelerator_client().
  static std::shared_ptr<Gang> of(DeviceKind kind, const JobMemory& memory, const Mesh& mesh);
  Gang(std::shared_ptr<pjrt::Client> client, const Mesh& mesh);

  const pjrt::Client& client() const { return *client_; }
  const std::shared_ptr<pjrt::Client>& shared_client() const { return client_; }

  /// Compiles a program, for all chips together if it `meets`, otherwise for any single chip. Chips
  /// with the same text share one compilation.
  std::shared_ptr<const pjrt::Executable> compile(const std::string& text, bool meets);

  /// Joins a chip's next run with the chip's part, and launches the run if no part is missing.
  /// `chip` is the number of the chip in the memory, and of its device in the client.
  std::shared_ptr<GangRun> join(int chip, std::shared_ptr<const AcceleratorPlan> plan,
                                GangPart part);
  /// Waits until the run is launched, but not longer than `until`. Returns a chip that hasn't
  /// joined, or nothing if the run is launched.
  std::optional<int> missing(const GangRun& run, std::chrono::steady_clock::time_point until);
  /// Waits until the chip's part of a launched run has ended, and returns the chip's results.
  /// Throws PluginError and the errors of custom ops.
  std::vector<pjrt::Buffer> finish(GangRun& run, int chip);

 private:
  void launch(GangRun& run);
  void launch_parts(GangRun& run);

  const std::shared_ptr<pjrt::Client> client_;
  std::vector<int> chips_;  ///< indexed by replica, which is the position in the mesh
  std::mutex compile_mutex_;
  std::map<std::string, std::weak_ptr<const pjrt::Executable>> compiled_;  ///< key: the text
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, std::uint64_t> joined_;                          ///< number of runs by chip
  std::map<std::uint64_t, std::shared_ptr<GangRun>> gathering_;  ///< runs that lack parts
};

}  // namespace weft
