#pragma once
/// WorkerRuntime: runs the programs that a worker's loop traces, and the loop's on_each_chip()
/// bodies, on the worker's chips.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include <weft/sharding/chip.hpp>

#include "actors/runtime/buffer_pool.hpp"
#include "actors/runtime/data_hashes.hpp"
#include "actors/runtime/executed.hpp"
#include "actors/runtime/held_buffers.hpp"
#include "actors/runtime/plan_store.hpp"
#include "actors/runtime/program_listing.hpp"
#include "actors/runtime/state_keeper.hpp"
#include "actors/runtime/worker_link.hpp"
#include "actors/runtime/worker_runtime_options.hpp"
#include "spmd/tensor/compile_cache.hpp"
#include "spmd/tensor/runtime.hpp"
#include "transport/blackbox/recorder.hpp"
#include "transport/job/program_list.hpp"

namespace weft {

/// Only the loop's thread may use it. At most two runs are in progress, because run() waits.
class WorkerRuntime : public Runtime {
 public:
  /// `memory` was made for `memory_mesh`. `devices` drive the chips at `positions`.
  WorkerRuntime(const Mesh& mesh, const Mesh& memory_mesh, std::vector<int> positions,
                std::vector<std::unique_ptr<DeviceLink>> devices, JobMemory& memory,
                WorkerLink& link, const Recorder& recorder, WorkerRuntimeOptions options);
  ~WorkerRuntime() override;

  const Mesh* mesh() const override { return options_.has_mesh ? &mesh_ : nullptr; }
  std::span<const int> positions() const override { return positions_; }
  RunResult run(const Program& program, const Fingerprint& key, std::span<const Binding> inputs,
                const RunSite& site) override;
  std::vector<std::byte> read(const Buffer& buffer) override;
  void wait() override { drain(); }
  Restored take_restored(const std::string& name, const TensorType& type) override;
  bool has_restored(const std::string& name) const override;
  BufferPtr put_state(const ProgramInput& state, const TensorType& type,
                      const std::vector<std::byte>& elements, const BufferPtr& before,
                      const std::source_location& loc) override;
  void require_alike(const std::string& text, const RunSite& site) override;
  void changes_state(const StateChange& change) override;
  std::uint64_t step() const override { return step_; }
  void end_step() override;
  void collect_metrics() override;
  void warn(const std::string& text) override;  ///< only worker 0 warns
  LoopRecorder& recorder() { return recorder_; }
  /// See TrainContext.
  void call_on_chips(const std::function<void(Chip&)>& body, const std::source_location& where);
  ArenaPlace allocate(std::int64_t size, std::size_t element_bytes,
                      const std::source_location& where);

  /// Makes an empty run and returns its number. All workers must pass the same `text` and `key`.
  std::uint64_t agree(const std::string& text, const Fingerprint& key, const RunSite& site);
  /// Returns a chip's shard. It is valid while the buffer is held, and complete after the last run.
  std::shared_ptr<const std::byte> host_shard(const BufferPtr& buffer, std::size_t chip);
  void hold(std::shared_ptr<HeldBuffers> held) { holds_.add(std::move(held)); }
  /// Makes chip memory for data. The host may write it until a run binds it. Throws no_space.
  ChipInput make_input(const TensorType& type, const Sharding& sharding);
  void deliver(const ChipInput& input, std::shared_ptr<const RowOrigin> rows);  ///< after writing
  const Mesh& program_mesh() const { return mesh_; }  ///< one chip if there is no mesh
  void require_loop_thread(const char* what, const std::source_location& where) const;
  std::vector<LoopObserver*>& observers() { return observers_; }
  const JobMemory& memory() const { return memory_; }
  StateKeeper* state() { return state_ ? &*state_ : nullptr; }  ///< null if no state is kept
  std::uint64_t reads() const { return reads_; }                ///< values read by the host
  void drain();  ///< waits for every run; throws the failure of a device
  void wait_for_run(std::uint64_t run) const;  ///< any thread may call it
  std::uint64_t runs() const { return runs_; }
  DataChecks check_data() const { return options_.check_data; }
  void note_data(std::string label, std::uint64_t hash);  ///< is compared with the next run
  std::uint64_t generation() const { return options_.generation; }
  const RunSite& last_site() const { return last_site_; }  ///< the site of the last run

 private:
  static constexpr std::uint64_t kRunsUnderWay = 2;  ///< the maximum number of runs in progress
  const CompileCache::Entry& find_or_compile(const Program& program, const Fingerprint& key,
                                             const RunSite& site);
  std::shared_ptr<const Plan> load_or_compile(const Program& program, const Fingerprint& key,
                                              ProgramEntry& entry);
  void say_unused_axes(const Plan& plan, const RunSite& site);
  std::vector<ChipSet> overwriters(const Plan& plan) const;
  std::uint32_t find_checked(std::uint32_t program, const RunSite& site);
  void admit(std::uint32_t number, std::string text, const Fingerprint& fingerprint,
             const RunSite& site);
  std::uint32_t find_or_admit(const std::source_location& where);
  void call_devices(std::uint32_t number, const std::function<void(Chip&)>& body,
                    const RunSite& site);
  void tell_data(DataHashes hashes);
  void await_room() const;
  void begin_run(std::uint32_t program, const RunSite& site);
  BufferPtr bind(const Plan& plan, std::size_t input, const Binding& binding);
  BufferPtr make_written_by_host(const TensorType& type, const ProgramInput& input,
                                 std::uint64_t completed);
  BufferPtr make_output(const Plan& plan, std::size_t output);
  BufferPtr next_version(const Executed& executed, std::size_t output, const Binding& binding,
                         const BufferPtr& now);
  void commit(DeviceRun& run);
  void keep_unused();
  void end_first_step();
  void require_known(const Executed& executed, std::span<const Binding> inputs) const;
  void note_inputs(Executed& executed, std::span<const Binding> inputs, const RunResult& result);
  void note_outputs(Executed& executed, const RunResult& result);
  void require_own(const Buffer& buffer, const std::string& name,
                   const std::source_location* where) const;
  void upload(const std::vector<std::byte>& global, const Buffer& buffer);
  void read_source(const TensorSource& source, const Buffer& buffer);

  const Mesh mesh_;
  const std::vector<int> positions_;
  std::vector<std::unique_ptr<DeviceLink>> devices_;
  JobMemory& memory_;
  WorkerLink& link_;
  LoopRecorder recorder_;
  std::shared_ptr<ResumedState> resume_from_;  // needed during the first step
  std::map<std::string, BufferPtr> unused_;    // state of the checkpoint that isn't used yet
  const WorkerRuntimeOptions options_;
  std::optional<StateKeeper> state_;  // absent if there is no mesh or no state is kept
  std::shared_ptr<BufferPool> pool_;
  Holds holds_;
  const int loop_thread_;  // a thread id of gettid()
  const std::shared_ptr<void> alive_ = std::make_shared<char>();
  const PlanStore store_;
  const ProgramListing listing_;
  const ProgramList program_list_;
  CompileCache cache_;
  std::map<std::string, std::uint32_t> bodies_;  // numbers of on_each_chip() bodies, by place
  bool axes_said_ = false;
  std::uint32_t programs_ = 0;                      // number of programs so far, including bodies
  std::map<std::uint32_t, Executed> executed_;      // by program
  std::map<std::uint32_t, std::uint32_t> checked_;  // by program: its copy that detects anomalies
  std::uint64_t step_ = 0, runs_ = 0, reads_ = 0, commits_ = 0;  // commits_: last step committed
  DataHashes put_, noted_;  // hashes since the last run: of state that the host has set; of items
  std::vector<LoopObserver*> observers_;
  RunSite last_site_;
};

}  // namespace weft
