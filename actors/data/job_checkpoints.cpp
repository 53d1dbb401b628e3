#include "actors/data/job_checkpoints.hpp"

#include <set>
#include <utility>

#include <fmt/format.h>

#include <weft/error.hpp>

#include "actors/process/log.hpp"
#include "spmd/mesh/box.hpp"
#include "spmd/tensor/node.hpp"
#include "spmd/tensor/trace.hpp"
#include "transport/storage/shard_owners.hpp"

namespace weft {
namespace {

/// Shows on the board that the loop waits for a checkpoint.
class Saving {
 public:
  explicit Saving(BoardWriter board) : board_(board) { board_.state(ActorState::saving); }
  ~Saving() { board_.state(ActorState::running); }
  Saving(const Saving&) = delete;
  Saving& operator=(const Saving&) = delete;

 private:
  BoardWriter board_;
};

const Sharding& sharding_of(const Binding& value) {
  static const Sharding kReplicated = Sharding::closed();
  const auto* bound = std::get_if<BoundBuffer>(&value);
  return bound != nullptr ? bound->buffer->sharding() : kReplicated;
}

/// The place of a box's first element among those of memory that holds a larger box.
std::int64_t element_offset(const Box& box, const PlacedBox& memory) {
  std::int64_t offset = 0;
  for (int d = 0; d < memory.room.size(); ++d) {
    offset = offset * memory.room[d] + box.offsets[d] - memory.box.offsets[d];
  }
  return offset;
}

/// All that the workers must agree on, a line for each tensor.
std::string text_of(const CheckpointManifest& table) {
  std::string text = fmt::format("save step {}\n", table.step);
  for (const StoredTensor& tensor : table.tensors) {
    text += fmt::format("save '{}' {}\n", tensor.name, tensor.type.to_string());
  }
  return text;
}

Fingerprint key_of(const std::string& text) {
  return {.low = xxh3(std::as_bytes(std::span(text))), .high = 0};
}

}  // namespace

JobCheckpoints::JobCheckpoints(WorkerRuntime& runtime, const JobLoaders& loaders, WorkerLink& link,
                               BoardWriter board, JobCheckpointsOptions options)
    : runtime_(runtime),
      loaders_(loaders),
      link_(link),
      board_(board),
      options_(std::move(options)),
      writer_(link,
              {.worker = options_.worker,
               .num_workers = options_.num_workers,
               .generation = runtime.generation(),
               .owner = fmt::format("{}-{}", options_.job_id, runtime.generation()),
               .config = options_.config},
              [&runtime](std::uint64_t run) { runtime.wait_for_run(run); }) {}

bool JobCheckpoints::is_due() const {
  const auto interval = static_cast<std::uint64_t>(options_.config.save_interval);
  if (interval != 0 && runtime_.step() != 0 && runtime_.step() % interval == 0) return true;
  return options_.config.on_preemption && link_.permits().is_ending();
}

void JobCheckpoints::save(std::span<const Parameter> state, const SaveOptions& options,
                          bool is_async, const std::source_location& where) {
  runtime_.require_loop_thread("save", where);
  wait(false);
  PartJob job = describe(state, options, where);
  job.in_background = is_async;
  const std::string text = text_of(job.table);
  add_shards(job, state, where);
  job.save = runtime_.agree(text, key_of(text), {.function = "save", .loc = where});
  pending_ = {.save = job.save, .step = job.table.step};
  runtime_.hold(job.held);
  writer_.write(std::move(job));
  if (!is_async) wait(true);
}

void JobCheckpoints::wait(bool is_strict) {
  const auto pending = std::exchange(pending_, {});
  if (!pending) return;
  const Saving saving(board_);
  const SaveEnded ended = link_.permits().wait_saved(pending->save);
  const bool has_failed_before = std::exchange(has_failed_, ended.error != 0);
  if (ended.error == 0) return;
  const std::string text =
      fmt::format("the checkpoint of step {} was not saved: {}", pending->step, ended.message);
  if (is_strict || has_failed_before) throw Error(static_cast<Errc>(ended.error), text);
  if (options_.worker == 0) logger("weft.worker")->error("{}", text);
}

PartJob JobCheckpoints::describe(std::span<const Parameter> state, const SaveOptions& options,
                                 const std::source_location& where) const {
  const Mesh& mesh = *runtime_.mesh();
  PartJob job;
  job.table = {.step = runtime_.step(),
               .mesh_shape = mesh.shape(),
               .axis_names = mesh.axis_names(),
               .device_ids = mesh.device_ids(),
               .seed = options_.seed,
               .user_json = Config{{"metrics", options.metrics}, {"user", options.user}}.dump(
                   -1, ' ', false, Config::error_handler_t::replace),
               .loaders = loaders_.made()};
  const std::string& best_by = options_.config.best_by;
  if (options_.worker == 0 && !best_by.empty() && !options.metrics.contains(best_by)) {
    fail(Errc::invalid_argument,
         "save at {}: metrics = {} has no \"{}\", which run.checkpoint.best_by names",
         file_line(where), options.metrics.dump(), best_by);
  }
  std::set<std::string_view> names;
  for (const Parameter& parameter : state) {
    const NodePtr& node = node_of(parameter, where);
    if (!names.insert(node->name).second) {
      fail(Errc::invalid_argument,
           "save at {}: two tensors are named '{}'; name the root modules of two models apart, as "
           "in Module(\"teacher\")",
           file_line(where), node->name);
    }
    job.table.tensors.push_back(
        {.name = node->name, .type = node->type, .kind = state_kind(node->kind)});
  }
  return job;
}

/// Of each tensor, what the chips of this worker store.
void JobCheckpoints::add_shards(PartJob& job, std::span<const Parameter> state,
                                const std::source_location& where) {
  const Mesh& mesh = *runtime_.mesh();
  job.held = std::make_shared<HeldBuffers>();
  std::vector<Binding> values;
  std::vector<ShardedTensor> tensors;
  for (std::size_t t = 0; t < state.size(); ++t) {
    values.push_back(Trace::synced_value(node_of(state[t], where), where));
    tensors.push_back({job.table.tensors[t].type, sharding_of(values.back())});
    job.table.tensors[t].sharding = tensors.back().sharding;
    if (const auto* bound = std::get_if<BoundBuffer>(&values.back())) {
      job.held->buffers.push_back(bound->buffer);
    }
  }
  const std::span<const int> local = runtime_.positions();
  for (const OwnedBox& own : assign_owners(tensors, mesh)) {
    const auto chip = std::ranges::find(local, own.position);
    if (chip == local.end()) continue;
    const TensorType& type = tensors[own.tensor].type;
    const Binding& value = values[own.tensor];
    PlacedBox memory = whole_box(type.shape);
    std::shared_ptr<const std::byte> elements;
    if (const auto* bound = std::get_if<BoundBuffer>(&value)) {
      memory = shard_box(type.shape, bound->buffer->sharding(), mesh, own.position);
      elements = runtime_.host_shard(bound->buffer, static_cast<std::size_t>(chip - local.begin()));
    } else if (const auto* host = std::get_if<HostData>(&value)) {
      elements = {*host, (*host)->data()};
    } else {
      memory = {.box = own.box, .room = own.box.dims};
      const auto bytes = static_cast<std::size_t>(TensorType{type.dtype, own.box.dims}.bytes());
      const auto read = std::make_shared<std::vector<std::byte>>(bytes);
      elements = {read, read->data()};
      job.reads.push_back([source = std::get<SourcePtr>(value), memory, read] {
        const TensorSource::Target target{memory, read->data()};
        source->read({&target, 1});
      });
    }
    const std::int64_t first = element_offset(own.box, memory) * byte_size(type.dtype);
    job.shards.push_back({.header = {.name = job.table.tensors[own.tensor].name,
                                     .type = type,
                                     .offsets = own.box.offsets,
                                     .dims = own.box.dims,
                                     .mesh_coords = mesh.coords(own.position),
                                     .step = job.table.step},
                          .elements = elements.get() + first,
                          .room = memory.room});
    job.tensors.push_back(own.tensor);
    job.memory.push_back(std::move(elements));
  }
}

}  // namespace weft
