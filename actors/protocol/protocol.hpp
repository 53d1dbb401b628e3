#pragma once
/// The messages between the trainer, the workers and their processes. messages.hpp makes them
/// messages of CAF.

#include <cstdint>
#include <string>
#include <vector>

#include <weft/job/checkpoint_config.hpp>
#include <weft/sharding/device.hpp>

#include "transport/format/stored_command.hpp"

namespace weft {

inline constexpr std::uint64_t kLeaseSteps = 64;       ///< the number of steps that a lease allows
inline constexpr std::uint64_t kLeaseAskedAhead = 32;  ///< steps left when a worker asks for more

/// The first message of a worker.
struct JoinRequest {
  std::int32_t worker = -1;
  std::int32_t pid = 0;
  std::string token{};          ///< from WEFT_JOB_TOKEN
  std::uint64_t committed = 0;  ///< the last step that all chips of its host have committed
  std::string memory_id{};      ///< identifies the memory of its host
};

/// Identifies the loop that a job runs. If the loop has no name, workers run main() again to find
/// it.
struct LoopIdentity {
  std::string name{};           ///< "": the loop has no name
  std::string site{};           ///< "train.cpp:12": the line of a named Loop or of the fit() call
  std::string object{};         ///< path of the library that contains the loop; "": the executable
  std::string build{};          ///< build id of that library or executable
  std::string type{};           ///< type of a loop without a name
  std::uint64_t offset = 0;     ///< offset of an unnamed function in that library or executable
  std::string config_digest{};  ///< XXH3 of Assignment::loop_config
};

/// The trainer's answer to a JoinRequest.
struct Assignment {
  std::vector<std::int64_t> mesh_shape{};  ///< empty: no mesh
  std::vector<std::string> axis_names{};
  std::vector<int> device_ids{};
  std::vector<std::int64_t> dcn_shape{};  ///< hosts per axis of the mesh; empty: one host
  DeviceKind device = DeviceKind::cpu;
  std::int32_t num_hosts = 1;  ///< chips of different hosts share no memory
  std::int32_t num_workers = 0;
  std::int32_t chips_per_worker = 0;
  std::int64_t timeout_ms = 0;
  std::uint64_t seed = 0;
  std::string run_dir{};
  bool recovers = false;    ///< the job can survive the loss of a worker
  bool keeps_state = true;  ///< chips keep two versions of the state
  std::uint64_t check_replicas_every = 0;
  bool is_eager = false;          ///< each op runs as soon as it is recorded
  CheckpointConfig checkpoint{};  ///< its path is absolute
  bool resume_partial = false;    ///< the loop initializes the state that its checkpoint lacks
  LoopIdentity loop{};
  std::string loop_config{};  ///< a named loop's config, as CBOR
};

/// A program that a worker shows to the trainer, for its program number `sequence` and run number
/// `run`. Usually the program is new to the worker. But if another worker wants a new program with
/// these numbers, this worker shows the known program that it runs there.
struct ProgramSeen {
  std::int32_t worker = -1;
  std::uint64_t generation = 1;
  std::uint32_t sequence = 0;
  std::uint64_t run = 0;
  std::uint64_t fingerprint_low = 0;
  std::uint64_t fingerprint_high = 0;
  std::string text{};  ///< one line per op, from which errors take the first line that differs
  std::string site{};  ///< the call for which it runs: "the sync at train.cpp:41"
};

/// A worker's report. `number` counts the worker's earlier reports in the same step and generation.
struct Report {
  std::int32_t worker = -1;
  std::uint64_t generation = 1;
  std::uint64_t step = 0;
  std::uint32_t number = 0;
  std::string metrics{};     ///< a JSON object as CBOR, which can represent NaN
  std::string checkpoint{};  ///< the checkpoint's folder; "": none
};

/// Hashes of the state that a worker's chips hold after `step` steps, in one or more messages.
/// `pieces` and `hashes` have a word per tensor and chip, tensor by tensor. Chips with the
/// same piece of a tensor must have the same hash.
struct StateHashes {
  std::int32_t worker = -1;
  std::uint64_t generation = 1;
  std::uint64_t step = 0;
  std::uint64_t num_tensors = 0;       ///< number of tensors in all the messages together
  std::vector<std::string> tensors{};  ///< the tensors in this message
  std::vector<std::uint64_t> pieces{};
  std::vector<std::uint64_t> hashes{};
};

/// Hashes of the data that a worker's loop uploads for run number `run`. All workers must have
/// equal data, and upload equal state.
struct DataHashes {
  std::int32_t worker = -1;
  std::uint64_t generation = 1;
  std::uint64_t step = 0;
  std::uint64_t run = 0;
  std::uint32_t num_states = 0;        ///< number of tensors that are state; these come first
  std::vector<std::string> tensors{};  ///< name, type and line of a tensor, or an item's place
  std::vector<std::uint64_t> hashes{};
  static constexpr const char* kOfDataset = " of dataset ";  ///< precedes the dataset's name
};

/// Sent to all workers when all have joined, so that their loops begin.
struct Start {
  std::uint64_t generation = 1;
  std::uint64_t step = 0;        ///< number of steps that earlier generations have taken
  std::uint64_t reports = 0;     ///< number of reports of worker 0 that the trainer has received
  std::string checkpoint{};      ///< the reported checkpoint that the loop must load; "": none
  std::string resume{};          ///< the checkpoint of `step` by a CheckpointManager; "": none
  std::uint64_t saved_step = 0;  ///< step of the last checkpoint by a CheckpointManager; 0: none
  bool asks = false;             ///< some loop has asked whether it is to end
  std::vector<StoredCommand> commands{};  ///< all commands of the job
  std::uint64_t commands_read = 0;        ///< number of `commands` that `checkpoint` knows
  std::vector<std::int32_t> donors{};     ///< see JobHosts::donors()
  /// The checkpoint folder of each host, if each host stores its own copies. Empty if all hosts
  /// store to Assignment::checkpoint.
  std::vector<std::string> folders{};
  std::vector<std::string> copies{};  ///< paths of the copies of `resume`, by host
  std::uint64_t seed = 0;             ///< the seed in `resume`, or else RunConfig::seed
};

/// The end of a worker's loop. Generation 0: the worker has joined but can't run the loop.
struct LoopEnded {
  std::int32_t worker = -1;
  std::uint64_t generation = 1;
  std::uint64_t step = 0;
  std::uint64_t runs = 0;  ///< number of programs started
  std::uint8_t error = 0;  ///< an Errc; 0: the loop returned
  std::string message{};
  bool preempted = false;   ///< the loop ended because it was told to
  bool left = false;        ///< a thrown Preempted ended the loop, which didn't ask whether to end
  std::string last{};       ///< the call for which its last program ran; "": none
  std::string thrown_at{};  ///< the user's calls at the throw; "": unknown, or the loop returned
  std::string returned{};   ///< the returned value as CBOR; "": nothing
};

}  // namespace weft
