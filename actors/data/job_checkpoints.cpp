#include "actors/data/job_checkpoints.hpp"

#include <set>
#include <utility>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "actors/process/log.hpp"
#include "spmd/mesh/hybrid_mesh.hpp"
#include "spmd/tensor/node.hpp"
#include "spmd/text/listing_difference.hpp"
#include "transport/format/saved_notes.hpp"

namespace weft {
namespace {

/// Describes the tensors to save, one per line. The listings of all workers must be equal.
std::string listing_of(const CheckpointManifest& table) {
  std::string text;
  for (const StoredTensor& tensor : table.tensors) {
    text += fmt::format("save '{}' {}\n", tensor.name, tensor.type.to_string());
  }
  return text;
}

/// Returns the number of bytes that this worker stores.
std::uint64_t bytes_of(const PartJob& job) {
  std::int64_t bytes = 0;
  for (const auto& shard : job.shards) {
    bytes += TensorType{shard.header.type.dtype, shard.header.dims}.bytes();
  }
  return static_cast<std::uint64_t>(bytes);
}

Fingerprint key_of(const std::string& text) {
  return {.low = xxh3(std::as_bytes(std::span(text))), .high = 0};
}

}  // namespace

JobCheckpoints::JobCheckpoints(WorkerRuntime& runtime, const JobLoaders& loaders, WorkerLink& link,
                               const Recorder& recorder, JobCheckpointsOptions options)
    : runtime_(runtime),
      loaders_(loaders),
      link_(link),
      recorder_(recorder),
      options_(std::move(options)),
      writer_(link,
              {.worker = options_.worker,
               .part = options_.part,
               .num_parts = options_.num_parts,
               .generation = runtime.generation(),
               .owner = fmt::format("{}-{}", options_.job_id, runtime.generation()),
               .config = options_.config},
              [&runtime](std::uint64_t run) { runtime.wait_for_run(run); }),
      saved_step_(options_.saved_step) {
  runtime.observers().push_back(this);
  const auto interval = static_cast<std::uint64_t>(options_.config.save_interval);
  if (runtime.generation() == 1 || interval == 0) return;
  is_one_missing_ = runtime.step() / interval * interval > saved_step_.value_or(0);
}

JobCheckpoints::~JobCheckpoints() {
  std::erase(runtime_.observers(), static_cast<LoopObserver*>(this));
}

void JobCheckpoints::runs(const Program& plan) {
  if (!saves_) return;
  for (const ProgramInput& input : plan.inputs) {
    if (is_state(input.kind)) require_whole(input.name, input.sharding);
  }
}

void JobCheckpoints::require_whole(const std::string& name, const Sharding& sharding) const {
  const AtomMask atoms = sharding.used() | sharding.unreduced;
  if (!options_.is_per_host || (atoms & runtime_.mesh()->dcn_atoms()) == 0) return;
  fail(Errc::unavailable,
       "'{}' is divided over hosts, which share no folder of checkpoints, so no host could store "
       "it ({} is the folder of this one): set run.checkpoint.path to a folder that all hosts "
       "share or to a URL, or shard over the chips of each host alone "
       "(FsdpOptions::across_hosts = false)",
       name, options_.config.path);
}

/// Returns the positions of the chips that store to the same folder as this host: either all chips,
/// or this host's chips.
std::vector<int> JobCheckpoints::storing_positions() const {
  const Mesh& mesh = *runtime_.mesh();
  const int host = host_of(mesh, runtime_.positions().front());
  std::vector<int> positions;
  for (int position = 0; position < mesh.size(); ++position) {
    if (!options_.is_per_host || host_of(mesh, position) == host) positions.push_back(position);
  }
  return positions;
}

/// Returns whether a save is due now. It isn't if this step was or is being saved. If the loss of a
/// worker interrupted a save, that save is due in the next generation.
bool JobCheckpoints::is_due() const {
  const std::uint64_t step = runtime_.step();
  if (step == saved_step_ || (pending_ && pending_->step == step)) return false;
  if (options_.config.on_preemption && link_.permits().is_ending()) return true;
  const auto interval = static_cast<std::uint64_t>(options_.config.save_interval);
  if (interval == 0 || step == 0) return false;
  return step % interval == 0 || is_one_missing_;
}

void JobCheckpoints::save(std::span<const Parameter> state, const SaveOptions& options,
                          bool is_async, const std::source_location& where) {
  runtime_.require_loop_thread("save", where);
  runtime_.recorder().at(where);
  wait(false);
  PartJob job = describe(state, options, where);
  // A job that is about to end has little time, and its loop does nothing else meanwhile, so the
  // part is written at normal priority.
  job.held = std::make_shared<HeldBuffers>(!is_async || link_.permits().is_ending());
  add_shards(job, state, where);
  job.save = agree(job.table, where);
  if (options_.is_per_host) {
    job.table.save_id = fmt::format("{}-{}-{}", options_.job_id, runtime_.generation(), job.save);
  }
  pending_ = {.save = job.save, .step = job.table.step};
  is_one_missing_ = false;
  recorder_.events.put(EventKind::checkpoint, {.number = job.table.step,
                                               .value = bytes_of(job),
                                               .text = recorder_.events.intern("begins")});
  runtime_.hold(job.held);
  writer_.write(std::move(job));
  if (!is_async) wait(true);
}

/// Lets all workers agree on the save's tensors. The first save sends the trainer all names. A
/// later save sends only the difference from the previous listing, which all workers have.
std::uint64_t JobCheckpoints::agree(const CheckpointManifest& table,
                                    const std::source_location& where) {
  std::string listing = listing_of(table);
  const Fingerprint key = key_of(fmt::format("{}\n{}", table.step, listing));
  std::string text = fmt::format("save step {}", table.step);
  if (listing_.empty()) {
    text += "\n" + listing;
  } else if (listing == listing_) {
    text += ", with the same tensors as the previous save\n";
  } else {
    const Difference change = first_difference(listing_, listing);
    text += fmt::format(", with other tensors than the previous save: not `{}` but `{}`\n",
                        change.first, change.second) +
            listing;
  }
  const std::uint64_t save = runtime_.agree(text, key, {.function = "save", .loc = where});
  listing_ = std::move(listing);
  return save;
}

void JobCheckpoints::wait(bool is_strict) {
  const auto pending = std::exchange(pending_, {});
  if (!pending) return;
  const SaveEnded ended = [&] {
    const CheckpointWait waiting(recorder_, pending->step, runtime_);
    writer_.hurry();
    return link_.permits().wait_saved(pending->save);
  }();
  const bool has_failed_before = std::exchange(has_failed_, ended.error != 0);
  if (ended.error == 0) {
    saved_step_ = pending->step;
    return;
  }
  const std::string text =
      fmt::format("the checkpoint of step {} was not saved: {}", pending->step, ended.message);
  if (is_strict || has_failed_before) throw Error(static_cast<Errc>(ended.error), text);
  if (options_.worker == 0) logger("weft.worker")->error("{}", text);
}

PartJob JobCheckpoints::describe(std::span<const Parameter> state, const SaveOptions& options,
                                 const std::source_location& where) const {
  const Mesh& mesh = *runtime_.mesh();
  PartJob job;
  job.table = {
      .step = runtime_.step(),
      .mesh_shape = mesh.shape(),
      .axis_names = mesh.axis_names(),
      .device_ids = mesh.device_ids(),
      .seed = options_.seed,
      .user_json = to_user_json({.metrics = options.metrics,
                                 .user = options.user,
                                 .best_by = options_.config.best_by,
                                 .is_max_best = options_.config.best_mode == BestMode::max}),
      .loaders = loaders_.made(),
      .dcn_shape = dcn_shape(mesh)};
  if (options_.part == 0) {  // its table becomes the manifest
    job.table.commands = link_.permits().with_commands(
        [](const LoopCommands& commands) { return commands.known(); });
  }
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

/// Adds the shards that this worker's chips store.
void JobCheckpoints::add_shards(PartJob& job, std::span<const Parameter> state,
                                const std::source_location& where) {
  OwnState own = own_state(runtime_, state, *job.held, storing_positions(), where);
  for (std::size_t t = 0; t < state.size(); ++t) {
    require_whole(job.table.tensors[t].name, own.shardings[t]);
    job.table.tensors[t].sharding = own.shardings[t];
  }
  for (OwnShard& shard : own.shards) {
    job.shards.push_back({.header = {.name = job.table.tensors[shard.tensor].name,
                                     .type = job.table.tensors[shard.tensor].type,
                                     .offsets = shard.box.offsets,
                                     .dims = shard.box.dims,
                                     .mesh_coords = runtime_.mesh()->coords(shard.position),
                                     .step = job.table.step},
                          .elements = shard.elements.get(),
                          .room = shard.room});
    job.tensors.push_back(shard.tensor);
    job.memory.push_back(std::move(shard.elements));
    if (shard.read) job.reads.push_back(std::move(shard.read));
  }
}

}  // namespace weft
