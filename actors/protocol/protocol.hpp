#pragma once
/// The messages between trainer, workers and their processes. messages.hpp makes them CAF messages.

#include <cstdint>
#include <string>
#include <vector>

#include <weft/job/checkpoint_config.hpp>
#include <weft/sharding/device.hpp>

#include "transport/format/stored_command.hpp"

namespace weft {

inline constexpr std::uint64_t kLeaseSteps = 64;  ///< the steps that a lease lets a worker begin
inline constexpr std::uint64_t kLeaseAskedAhead = 32;  ///< steps left when a worker asks for more

/// The first message of a worker.
struct JoinRequest {
  std::int32_t worker = -1;
  std::int32_t pid = 0;
  std::string token{};          ///< from WEFT_JOB_TOKEN
  std::uint64_t committed = 0;  ///< the last step that all chips of its host have committed
  std::string memory_id{};      ///< of its host's memory
};

/// Identifies the loop that a job runs. A worker runs main() again for a loop without a name.
struct LoopIdentity {
  std::string name{};           ///< "": the loop has no name
  std::string site{};           ///< "train.cpp:12", line of a named Loop, else of the fit() call
  std::string object{};         ///< path of the library that holds it; "": the executable
  std::string build{};          ///< build id of that object
  std::string type{};           ///< type of a loop without a name
  std::uint64_t offset = 0;     ///< offset of a function without a name in its object
  std::string config_digest{};  ///< XXH3 of loop_config
};

/// The trainer's answer.
struct Assignment {
  std::vector<std::int64_t> mesh_shape{};  ///< empty: no mesh
  std::vector<std::string> axis_names{};
  std::vector<int> device_ids{};
  std::vector<std::int64_t> dcn_shape{};  ///< hosts per axis of the mesh; empty: one host
  DeviceKind device = DeviceKind::cpu;
  std::int32_t num_hosts = 1;  ///< whose chips share no memory
  std::int32_t num_workers = 0;
  std::int32_t chips_per_worker = 0;
  std::int64_t timeout_ms = 0;
  std::uint64_t seed = 0;
  std::string run_dir{};
  bool recovers = false;    ///< the job can survive the loss of a worker
  bool keeps_state = true;  ///< keeps two versions of the state, to continue from or to compare
  std::uint64_t check_replicas_every = 0;
  bool is_eager = false;          ///< each op runs as soon as it is recorded
  CheckpointConfig checkpoint{};  ///< its path is absolute
  bool resume_partial = false;    ///< the loop initializes the state that its checkpoint lacks
  LoopIdentity loop{};
  std::string loop_config{};  ///< a named loop's config, as CBOR
};

/// A program that a worker shows the trainer: its number `sequence` in run number `run`. Either it
/// is new to the worker. Or another worker wants a new program with these numbers, and this worker
/// shows the known program that it runs in that place.
struct ProgramSeen {
  std::int32_t worker = -1;
  std::uint64_t generation = 1;
  std::uint32_t sequence = 0;
  std::uint64_t run = 0;
  std::uint64_t fingerprint_low = 0;
  std::uint64_t fingerprint_high = 0;
  std::string text{};  ///< one line per op, to name the first line that differs
  std::string site{};  ///< the call that it runs for: "the sync at train.cpp:41"
};

/// A worker's report. `number` counts its earlier reports of the same step and generation.
struct Report {
  std::int32_t worker = -1;
  std::uint64_t generation = 1;
  std::uint64_t step = 0;
  std::uint32_t number = 0;
  std::string metrics{};     ///< a JSON object as CBOR, which can represent NaN
  std::string checkpoint{};  ///< the checkpoint's folder; "": none
};

/// Hashes of the state that a worker's chips hold after `step` steps, in one or more messages.
/// `pieces` and `hashes` have one word per tensor and chip; the words of a tensor are adjacent.
/// Chips with the same piece of a tensor must have the same hash of it.
struct StateHashes {
  std::int32_t worker = -1;
  std::uint64_t generation = 1;
  std::uint64_t step = 0;
  std::uint64_t num_tensors = 0;       ///< the number in all the messages together
  std::vector<std::string> tensors{};  ///< the tensors in this message
  std::vector<std::uint64_t> pieces{};
  std::vector<std::uint64_t> hashes{};
};

/// Hashes of the data that a worker's loop uploads for its `run`-th run. All workers must have the
/// same, and upload the same state.
struct DataHashes {
  std::int32_t worker = -1;
  std::uint64_t generation = 1;
  std::uint64_t step = 0;
  std::uint64_t run = 0;
  std::uint32_t num_states = 0;        ///< the number of tensors that are state; these come first
  std::vector<std::string> tensors{};  ///< name, type and line of a tensor, or an item's place
  std::vector<std::uint64_t> hashes{};
  static constexpr const char* kOfDataset = " of dataset ";  ///< precedes the dataset's name
};

/// Sent to all workers when all have joined. Their loops then begin.
struct Start {
  std::uint64_t generation = 1;
  std::uint64_t step = 0;        ///< steps that earlier generations have taken
  std::uint64_t reports = 0;     ///< reports of worker 0 that the trainer has received
  std::string checkpoint{};      ///< the reported checkpoint that the loop is to load; "": none
  std::string resume{};          ///< a CheckpointManager's checkpoint of `step`; "": none
  std::uint64_t saved_step = 0;  ///< of a CheckpointManager's last checkpoint; 0: none
  bool asks = false;             ///< some loop has asked whether it is to end
  std::vector<StoredCommand> commands{};  ///< all commands of the job
  std::uint64_t commands_read = 0;        ///< how many of them `checkpoint` knows
  std::vector<std::int32_t> donors{};     ///< see JobHosts::donors()
  /// The folders of checkpoints, by host, if each host stores its own; else empty, and all store to
  /// Assignment::checkpoint.
  std::vector<std::string> folders{};
  std::vector<std::string> copies{};  ///< of `resume`, by host, if each host stores its own
  std::uint64_t seed = 0;             ///< of `resume`, or else RunConfig::seed
};

/// The end of a worker's loop. Generation 0: the worker has joined but can't run the loop.
struct LoopEnded {
  std::int32_t worker = -1;
  std::uint64_t generation = 1;
  std::uint64_t step = 0;
  std::uint64_t runs = 0;  ///< programs started
  std::uint8_t error = 0;  ///< an Errc; 0: the loop returned
  std::string message{};
  bool preempted = false;   ///< the loop ended because it was told to
  bool left = false;        ///< the loop didn't ask whether to end, so a thrown Preempted ended it
  std::string last{};       ///< the call that its last program ran for; "": none
  std::string thrown_at{};  ///< the user's calls at the throw; "": unknown, or the loop returned
  std::string returned{};   ///< the returned value as CBOR; "": nothing
};

}  // namespace weft
