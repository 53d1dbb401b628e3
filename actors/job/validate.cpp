#include "actors/job/validate.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include <fmt/ranges.h>

#include <weft/sharding/mesh.hpp>

#include "actors/job/validate_hosts.hpp"
#include "actors/job/validate_run.hpp"
#include "chips/registry/registry.hpp"
#include "data/files/plain_file.hpp"
#include "data/remote/storages.hpp"
#include "transport/blackbox/box_format.hpp"
#include "transport/job/control_format.hpp"
#include "transport/memory/open_files.hpp"

namespace weft {
namespace {

constexpr int kWorkersPerHostMax = 256;
constexpr int kChipsPerHostMax = kLocalChipCountMax;
constexpr int kWorkersMax = box_format::kWorkerCountMax;
constexpr int kChipsMax = box_format::kChipCountMax;

/// Returns the product of the sizes. Throws if a size is below 1, or if the product exceeds the
/// limit on a job's chips, which also prevents an overflow.
std::int64_t product(const std::vector<std::int64_t>& sizes, const std::string& source) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) {
    if (size < 1) {
      fail(Errc::invalid_argument, "{}: expected sizes of 1 or more", source);
    }
    if (size > kChipsMax / count) {
      fail(Errc::invalid_argument,
           "{}: more chips than the {} that a job may have on all its hosts", source, kChipsMax);
    }
    count *= size;
  }
  return count;
}

/// Returns whether "CPU" means the number of chips. If a number of chips is given, too, as in Ray's
/// {"CPU": 8, "TPU": 4}, it means the number of cores.
bool cpus_are_chips(const ScalingConfig& scaling) {
  return scaling.resources_per_worker.size() == 1 && scaling.chips_per_worker == 0;
}

/// Returns the number of cores per worker; 0 if unspecified.
int cpus_given(const ScalingConfig& scaling) {
  const auto cpus = scaling.resources_per_worker.find("CPU");
  if (cpus == scaling.resources_per_worker.end() || cpus_are_chips(scaling)) return 0;
  return static_cast<int>(cpus->second);
}

/// Returns the number of chips per worker that a field specifies; 0 if no field does.
int chips_given(const ScalingConfig& scaling) {
  if (scaling.chips_per_worker < 0) {
    fail(Errc::invalid_argument,
         "scaling.chips_per_worker = {}: expected 1 or more, or 0 to take it from the topology",
         scaling.chips_per_worker);
  }
  int chips = scaling.chips_per_worker;
  for (const auto& [resource, amount] : scaling.resources_per_worker) {
    if (resource != "TPU" && resource != "GPU" && resource != "CPU") {
      fail(Errc::invalid_argument,
           "scaling.resources_per_worker[\"{}\"]: expected \"TPU\" or \"GPU\", whose amount is the "
           "number of chips per worker, or \"CPU\"",
           resource);
    }
    if (amount < 1 || amount != std::floor(amount) || amount > kChipsPerHostMax) {
      fail(Errc::invalid_argument,
           "scaling.resources_per_worker[\"{}\"] = {}: expected a whole number from 1 to {}",
           resource, amount, kChipsPerHostMax);
    }
    if (resource == "CPU" && !cpus_are_chips(scaling)) continue;
    if (chips != 0 && chips != static_cast<int>(amount)) {
      fail(Errc::invalid_argument,
           "scaling.chips_per_worker = {} and scaling.resources_per_worker[\"{}\"] = {} contradict "
           "each other: give one of them, or the same number",
           chips, resource, amount);
    }
    chips = static_cast<int>(amount);
  }
  return chips;
}

/// Throws if a slice of several workers has no topology, which Ray also requires.
void check_topology(const ScalingConfig& scaling) {
  if (!scaling.use_tpu || scaling.num_workers <= 1 || !scaling.topology.empty()) return;
  fail(Errc::invalid_argument,
       "scaling.topology = \"\" with scaling.use_tpu and {} workers: a TPU slice of several "
       "workers needs its topology; add .topology = \"4x4\" (the grid of all chips)",
       scaling.num_workers);
}

bool is_spmd(const BackendConfig& backend) { return backend.backend == Backend::spmd; }

void check_tls(const TlsConfig& tls) {
  parse_tls_address(tls.listen, "backend.tls.listen");
  if (tls.wanted()) return require_sound(tls);
  if (tls.listen != TlsConfig{}.listen) {
    fail(Errc::invalid_argument,
         "backend.tls.listen = \"{}\", but there is no backend.tls.certificate: set "
         "certificate, key and ca too, or leave listen out (control then uses a Unix socket)",
         tls.listen);
  }
}

void check_backend(const BackendConfig& backend) {
  check_tls(backend.tls);
  if (!(backend.timeout_s > 0) || backend.timeout_s > 1e6) {
    fail(Errc::invalid_argument, "backend.timeout_s = {}: expected seconds, from above 0 to 1e6",
         backend.timeout_s);
  }
  for (const auto& [field, size] :
       {std::pair("data_parallel_size", backend.spmd.data_parallel_size),
        std::pair("model_parallel_size", backend.spmd.model_parallel_size)}) {
    if (size < 0 || size > kChipsMax) {
      fail(Errc::invalid_argument,
           "backend.spmd.{} = {}: expected 1 to {}, or 0 for the remaining chips", field, size,
           kChipsMax);
    }
  }
  const bool sizes = !backend.spmd.mesh_shape.empty() || backend.spmd.data_parallel_size != 0 ||
                     backend.spmd.model_parallel_size != 0;
  const bool names = !backend.spmd.axis_names.empty() || !backend.spmd.device_ids.empty();
  if (!is_spmd(backend) && (sizes || names || backend.spmd.hybrid)) {
    fail(Errc::invalid_argument,
         "backend.backend = Backend::none has no mesh, but backend.spmd describes one: leave "
         "backend.spmd empty, or set backend.backend = Backend::spmd");
  }
}

/// Sets mesh_shape, axis_names and device_ids from a HybridMesh.
void flatten_hybrid(SpmdConfig& spmd) {
  if (!spmd.hybrid) return;
  const HybridMesh hybrid = *spmd.hybrid;
  hybrid.validate();
  if (!spmd.mesh_shape.empty() || !spmd.axis_names.empty()) {
    fail(Errc::invalid_argument,
         "backend.spmd has both hybrid and mesh_shape ({}) or axis_names ({}): give one of them",
         fmt::join(spmd.mesh_shape, ","), fmt::join(spmd.axis_names, ","));
  }
  const bool has_one_host =
      std::ranges::all_of(hybrid.dcn, [](std::int64_t hosts) { return hosts == 1; });
  if (!has_one_host && !spmd.device_ids.empty()) {
    fail(Errc::invalid_argument,
         "backend.spmd has device_ids ({}) and hybrid.dcn = ({}): the chips of each host have "
         "consecutive ids, in the order of hybrid.ici; leave device_ids empty",
         fmt::join(spmd.device_ids, ","), fmt::join(hybrid.dcn, ","));
  }
  spmd.axis_names = hybrid.axis_names;
  for (std::size_t axis = 0; axis < hybrid.ici.size(); ++axis) {
    spmd.mesh_shape.push_back(hybrid.dcn[axis] * hybrid.ici[axis]);
  }
  if (has_one_host) return;
  product(spmd.mesh_shape, "backend.spmd.hybrid: dcn x ici");
  spmd.device_ids = hybrid.mesh().device_ids();
}

/// Returns the number of chips per worker, computed from other fields if no field specifies it.
int resolve_chips(const TrainerOptions& options, int joins,
                  const std::vector<std::int64_t>& topology) {
  const int given = chips_given(options.scaling);
  if (given != 0) return given;
  const SpmdConfig& spmd = options.backend.spmd;
  std::int64_t total = 0;
  std::string source;
  if (!topology.empty()) {
    source = fmt::format("scaling.topology = \"{}\"", options.scaling.topology);
    total = product(topology, source);
  } else if (!spmd.mesh_shape.empty()) {
    source =
        fmt::format("backend.spmd.{} = {{{}}}", spmd.hybrid ? "hybrid: dcn x ici" : "mesh_shape",
                    fmt::join(spmd.mesh_shape, ", "));
    total = product(spmd.mesh_shape, source);
  } else if (spmd.data_parallel_size > 0 && spmd.model_parallel_size > 0) {
    source = fmt::format("backend.spmd: data_parallel_size {} x model_parallel_size {}",
                         spmd.data_parallel_size, spmd.model_parallel_size);
    total = product({spmd.data_parallel_size, spmd.model_parallel_size}, source);
  } else {
    return 1;
  }
  if (total % joins != 0) {
    fail(Errc::mesh_mismatch,
         "{} has {} chips, which can't be divided evenly among scaling.num_workers = {}: give "
         "a number of workers that divides {}",
         source, total, joins, total);
  }
  return static_cast<int>(total / joins);
}

Mesh resolve_mesh(const TrainerOptions& options, int joins, int chips,
                  const std::vector<std::int64_t>& topology) {
  const SpmdConfig& spmd = options.backend.spmd;
  if (spmd.hybrid && spmd.hybrid->num_hosts() * spmd.hybrid->chips_per_host() != joins * chips) {
    fail(Errc::mesh_mismatch,
         "backend.spmd.hybrid has {} hosts of {} chips, but {} workers x {} chips = {}: change dcn "
         "({}) or ici ({}), scaling.num_workers or scaling.chips_per_worker",
         spmd.hybrid->num_hosts(), spmd.hybrid->chips_per_host(), joins, chips, joins * chips,
         fmt::join(spmd.hybrid->dcn, ","), fmt::join(spmd.hybrid->ici, ","));
  }
  const Mesh mesh =
      make_mesh({.chips_per_worker = std::vector<int>(static_cast<std::size_t>(joins), chips),
                 .topology = topology,
                 .mesh_shape = spmd.mesh_shape,
                 .axis_names = spmd.axis_names,
                 .device_ids = spmd.device_ids,
                 .data_parallel_size = spmd.data_parallel_size,
                 .model_parallel_size = spmd.model_parallel_size});
  if (!spmd.hybrid) return mesh;
  return {mesh.shape(), mesh.axis_names(), mesh.device_ids(), spmd.hybrid->dcn};
}

/// Returns the place of a run's checkpoints, or of one checkpoint, as an absolute path or a URL.
std::string checkpoint_place(std::string path, const char* field) {
  if (find_storage(path, field) == nullptr) return absolute_path(path, field);
  return without_last_slash(std::move(path));
}

ResumeFrom resume_from(const std::string& option) {
  using Kind = ResumeFrom::Kind;
  if (option == "never") return {Kind::never};
  if (option == "auto") return {Kind::newest};
  return {Kind::path, checkpoint_place(option, "run.resume")};
}

RecoveryPolicy resolve_recovery(const FailureConfig& failure, int num_workers) {
  if (failure.max_failures < -1) {
    fail(Errc::invalid_argument,
         "run.failure.max_failures = {}: expected 0 or more, or -1 for any number",
         failure.max_failures);
  }
  if (failure.max_failures != 0 && num_workers == 0) {
    fail(Errc::invalid_argument,
         "run.failure.max_failures = {} with scaling.num_workers = 0: a worker in this process "
         "can't be started again; set num_workers to 1 or more, or max_failures to 0",
         failure.max_failures);
  }
  if (!(failure.backoff_s >= 0) || failure.backoff_s > 60) {
    fail(Errc::invalid_argument, "run.failure.backoff_s = {}: expected seconds, from 0 to 60",
         failure.backoff_s);
  }
  if (failure.hang_timeout_s != 0 && !(failure.hang_timeout_s >= 0.5)) {
    fail(Errc::invalid_argument,
         "run.failure.hang_timeout_s = {}: expected seconds, 0.5 or more, or 0 to wait for "
         "backend.timeout_s",
         failure.hang_timeout_s);
  }
  if (!(failure.host_timeout_s >= 3)) {
    fail(Errc::invalid_argument,
         "run.failure.host_timeout_s = {}: expected seconds, 3 or more, because hosts tell each "
         "other each second that they live",
         failure.host_timeout_s);
  }
  const double warning_s = failure.hang_warning_s.value_or(0);
  if (warning_s != 0 && !(warning_s >= 0.5)) {
    fail(Errc::invalid_argument,
         "run.failure.hang_warning_s = {}: expected seconds, 0.5 or more, 0 for no warning, or "
         "no value for a time that weft derives from the job's steps",
         warning_s);
  }
  if (failure.state_versions != 1 && failure.state_versions != 2) {
    fail(Errc::invalid_argument,
         "run.failure.state_versions = {}: expected 2, or 1 to save memory and continue from "
         "the last checkpoint",
         failure.state_versions);
  }
  return {.max_failures = failure.max_failures,
          .restart = failure.restart,
          .backoff_ms = static_cast<std::uint64_t>(failure.backoff_s * 1000)};
}

/// Reduces an eager job to one chip, in a mesh with the axes of the requested mesh.
void take_one_chip(JobSpec& spec) {
  spec.num_workers = std::min(spec.num_workers, 1);
  spec.chips_per_worker = 1;
  if (!spec.mesh) return;
  const std::vector<std::string> axes = spec.mesh->axis_names();
  spec.mesh = Mesh(std::vector<std::int64_t>(axes.size(), 1), axes);
}

void require_open_files(const JobSpec& spec) {
  const std::size_t needed =
      open_files_of_job(spec.num_workers, spec.num_chips(), spec.tls.wanted());
  const OpenFiles files = count_open_files();
  if (needed <= files.left()) return;
  fail(Errc::no_space,
       "{} workers and {} chips need {} open files, but this process may open {} more ({} are "
       "open, ulimit -n is {}); raise the limit where the process is started, or use fewer "
       "workers: {}",
       spec.num_workers, spec.num_chips(), needed, files.left(), files.open, files.limit,
       how_to_allow_open_files(files.open + needed, files));
}

}  // namespace

JobSpec validate(const TrainerOptions& given, const std::string& program, const HostPlace& place) {
  TrainerOptions options = given;
  if (options.loop_config.is_discarded()) {
    fail(Errc::invalid_argument,
         "loop_config is the value that Config::parse() returns for a text that isn't JSON: "
         "expected an object, such as {{\"lr\": 1e-3}}; parse with exceptions to see where the "
         "text is wrong");
  }
  const ScalingConfig& scaling = options.scaling;
  const int workers_max = std::min(kWorkersMax, kWorkersPerHostMax * place.count);
  if (scaling.num_workers < 0 || scaling.num_workers > workers_max) {
    fail(Errc::invalid_argument,
         "scaling.num_workers = {}: expected 1 to {}{}, or 0 to run everything in this process",
         scaling.num_workers, workers_max, place.count > 1 ? " on all hosts" : "");
  }
  check_placement(scaling, place);
  check_hosts(options, place);
  check_backend(options.backend);
  flatten_hybrid(options.backend.spmd);
  check_run(options.run, is_spmd(options.backend));
  check_topology(scaling);
  const std::vector<std::int64_t> topology =
      scaling.topology.empty() ? std::vector<std::int64_t>{} : parse_topology(scaling.topology);
  product(topology, fmt::format("scaling.topology = \"{}\"", scaling.topology));

  JobSpec spec;
  spec.place = place;
  spec.name = options.run.name.empty() ? program : options.run.name;
  spec.storage_path = absolute_path(options.run.storage_path, "run.storage_path");
  spec.num_workers = scaling.num_workers;
  spec.chips_per_worker = resolve_chips(options, spec.num_joins(), topology);
  spec.cpus_per_worker = cpus_given(scaling);
  if (spec.chips_per_host() > kChipsPerHostMax) {
    fail(Errc::invalid_argument,
         "{} workers x {} chips = {} chips on a host: this version runs up to {}",
         spec.workers_per_host(), spec.chips_per_worker, spec.chips_per_host(), kChipsPerHostMax);
  }
  if (spec.num_chips() > kChipsMax) {
    fail(Errc::invalid_argument,
         "{} hosts x {} chips = {} chips: this version runs up to {} in a job", place.count,
         spec.chips_per_host(), spec.num_chips(), kChipsMax);
  }
  if (!is_spmd(options.backend) && !topology.empty() &&
      product(topology, "scaling.topology") != spec.num_chips()) {
    fail(Errc::mesh_mismatch,
         "scaling.topology = \"{}\" doesn't have the {} chips of workers x chips: leave it "
         "empty, or change scaling.chips_per_worker",
         scaling.topology, spec.num_chips());
  }
  if (is_spmd(options.backend)) {
    spec.mesh = resolve_mesh(options, spec.num_joins(), spec.chips_per_worker, topology);
    if (place.count > 1) spec.mesh = over_hosts(*spec.mesh, options.backend.spmd, place.count);
  }
  if (options.actors != nullptr) spec.actors = detail::id_of(*options.actors);
  spec.timeout_s = options.backend.timeout_s;
  spec.seed = options.run.seed;
  spec.checkpoint = options.run.checkpoint;
  spec.checkpoint.path = checkpoint_place(spec.checkpoint.path, "run.checkpoint.path");
  spec.resume = resume_from(options.run.resume);
  spec.resume_partial = options.run.resume_partial;
  spec.is_eager = options.run.debug == DebugMode::eager;
  if (spec.is_eager) take_one_chip(spec);
  spec.device = choose_device(scaling, {.num_workers = spec.num_joins(),
                                        .chips_per_worker = spec.chips_per_worker,
                                        .is_in_trainer = spec.num_workers == 0});
  check_kept_state(options.run, *chip_kind(spec.device.kind).target);
  spec.recovery = resolve_recovery(options.run.failure, scaling.num_workers);
  spec.hang_timeout_s = options.run.failure.hang_timeout_s;
  spec.host_timeout_s = options.run.failure.host_timeout_s;
  spec.hang_warning_s = options.run.failure.hang_warning_s;
  spec.grace_s = options.run.grace_s;
  spec.check_replicas_every = static_cast<std::uint64_t>(options.run.check_replicas_every);
  spec.keep_for_rescue_s = options.run.keep_for_rescue_s;
  spec.keeps_state =
      options.run.failure.state_versions == 2 &&
      (spec.recovery.recovers() || spec.check_replicas_every > 0 || spec.keep_for_rescue_s > 0);
  spec.tls = options.backend.tls;
  set_network(options.backend, spec);
  spec.ends_on_nan = options.run.failure.ends_on_nan;
  require_open_files(spec);
  return spec;
}

}  // namespace weft
