#include <weft/actor/session.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <weft/tensor/error.hpp>

#include "actors/process/log.hpp"
#include "actors/runtime/arena_buffer.hpp"
#include "chips/registry/registry.hpp"
#include "spmd/tensor/compile_cache.hpp"
#include "spmd/tensor/loop_threads.hpp"
#include "spmd/tensor/node.hpp"
#include "transport/published/version_source.hpp"

namespace weft {
namespace {

constexpr std::size_t kMemoryLeast = std::size_t{1} << 20;
constexpr std::size_t kMemoryMost = std::size_t{1} << 40;

/// The buffer of a module's parameter or buffer, with a copy of its value in a version. It doesn't
/// hold the version.
class VersionBuffer : public ArenaBuffer {
 public:
  VersionBuffer(const TensorType& type, std::shared_ptr<BufferPool> pool, std::uint64_t offset,
                std::weak_ptr<const VersionSource> from, std::uint64_t version)
      : ArenaBuffer(type, Sharding::closed(), std::move(pool), BlockKind::plain, offset,
                    type.bytes()),
        from_(std::move(from)),
        version_(version) {}

  bool is_from(const std::shared_ptr<VersionSource>& reader, std::uint64_t version) const {
    return version_ == version && !from_.owner_before(reader) && !reader.owner_before(from_);
  }

 private:
  std::weak_ptr<const VersionSource> from_;
  std::uint64_t version_;
};

/// Runs programs on one chip, on the thread that calls it.
class SessionRuntime : public Runtime {
 public:
  explicit SessionRuntime(std::size_t memory_max)
      : memory_(JobMemory::anonymous(
            {.job = std::string(32, '0'), .num_chips = 1, .arena_capacity = memory_max})),
        kind_(chip_kind(DeviceKind::cpu)),
        engine_(kind_.make({.memory = memory_, .mesh = mesh_, .recorder = recorder_})) {
    engine_->settle();
    pool_ = std::make_shared<BufferPool>(
        BufferPool::Range{memory_.buffers_offset(), memory_.arena_capacity()},
        [this](std::uint64_t offset, std::size_t bytes) {
          engine_->reserve(offset, bytes);
          counts_.memory_bytes += bytes;
        });
  }

  const Mesh* mesh() const override { return nullptr; }
  std::span<const int> positions() const override { return {&position_, 1}; }
  bool is_session() const override { return true; }
  std::uint64_t step() const override { return step_; }
  void end_step() override { ++step_; }
  void warn(const std::string& text) override { logger("weft.session")->warn("{}", text); }
  const SessionCounts& counts() const { return counts_; }

  RunResult run(const Program& program, const Fingerprint& key, std::span<const Binding> inputs,
                const RunSite& site) override {
    const Loaded& loaded = find_or_load(program, key, site);
    const Plan& plan = *loaded.plan;
    RunResult result;
    RunBuffers offsets;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      result.input_buffers.push_back(bind(plan, i, inputs[i], site));
      offsets.inputs.push_back(offset_of(*result.input_buffers.back()));
    }
    for (std::size_t i = 0; i < program.outputs.size(); ++i) {
      result.outputs.push_back(make_output(plan, i, inputs, result.input_buffers));
      offsets.outputs.push_back(offset_of(*result.outputs.back()));
    }
    engine_->run(site.detects_anomaly ? loaded.checked : loaded.plain, step_, offsets);
    ++counts_.runs;
    return result;
  }

  std::vector<std::byte> read(const Buffer& buffer) override {
    require_own(buffer, "", nullptr);
    std::vector<std::byte> bytes(static_cast<std::size_t>(buffer.type().bytes()));
    engine_->download(offset_of(buffer), bytes);
    return bytes;
  }

  void changes_state(const StateChange& change) override {
    if (!bound_.contains(change.name)) return;
    fail(Errc::invalid_argument,
         "'{}' was bound by Session::bind(), so its value is that of a version and can't be set: "
         "call eval() of the module if one of its layers sets it in training mode (at {})",
         change.name, file_line(change.loc));
  }

  /// Returns a buffer with a copy of the elements.
  BufferPtr copy(const std::string& name, const TensorType& type, const std::byte* elements,
                 const std::shared_ptr<VersionSource>& from, std::uint64_t version) {
    auto buffer = std::make_shared<VersionBuffer>(type, pool_, allocate(type), from, version);
    upload(*buffer, elements);
    bound_.insert(name);
    ++counts_.copied;
    return buffer;
  }
  bool is_own(const Buffer& buffer) const {
    const auto* placed = dynamic_cast<const ArenaBuffer*>(&buffer);
    return placed != nullptr && placed->is_of(*pool_);
  }

 private:
  struct Loaded {
    std::shared_ptr<const Plan> plan;
    std::shared_ptr<const LoadedPlan> plain;
    std::shared_ptr<const LoadedPlan> checked;  ///< the plan with checks for anomalies; null: not
                                                ///< needed yet
  };

  const Loaded& find_or_load(const Program& program, const Fingerprint& key, const RunSite& site) {
    const CompileCache::Entry* entry = cache_.find(program, key);
    if (entry == nullptr) {
      if (const auto reason = cache_.explain(program, site)) warn(*reason);
      const auto plan = std::make_shared<const Plan>(compile(program, mesh_, *kind_.target));
      programs_.push_back({.plan = plan, .plain = engine_->load(*plan), .checked = nullptr});
      ++counts_.programs;
      entry = &cache_.add(program, key, {static_cast<std::uint32_t>(programs_.size() - 1), plan});
    }
    Loaded& loaded = programs_[entry->number];
    if (site.detects_anomaly && loaded.checked == nullptr) {
      loaded.checked = engine_->load(*loaded.plan, true);
    }
    return loaded;
  }

  BufferPtr bind(const Plan& plan, std::size_t i, const Binding& binding, const RunSite& site) {
    if (const auto* bound = std::get_if<BoundBuffer>(&binding)) {
      require_own(*bound->buffer, plan.program.inputs[i].name, &site.loc);
      return bound->buffer;
    }
    const TensorType& type = plan.input_types[i];
    auto buffer = std::make_shared<ArenaBuffer>(type, plan.program.inputs[i].sharding, pool_,
                                                BlockKind::plain, allocate(type), type.bytes());
    if (const auto* data = std::get_if<HostData>(&binding)) {
      upload(*buffer, (*data)->data());
    } else {
      engine_->upload(buffer->offset(0), static_cast<std::size_t>(type.bytes()),
                      [&](std::byte* memory) {
                        const TensorSource::Target target{whole_box(type.shape), memory};
                        std::get<SourcePtr>(binding)->read({&target, 1});
                      });
    }
    return buffer;
  }

  /// Returns the buffer for an output. It is the buffer of the input that the output updates, if
  /// the run may overwrite that, else a new one.
  BufferPtr make_output(const Plan& plan, std::size_t i, std::span<const Binding> inputs,
                        const std::vector<BufferPtr>& buffers) {
    const ProgramOutput& output = plan.program.outputs[i];
    if (output.updates >= 0 && plan.donated[i]) {
      const auto updated = static_cast<std::size_t>(output.updates);
      const auto* bound = std::get_if<BoundBuffer>(&inputs[updated]);
      if (bound == nullptr || bound->may_be_overwritten()) return buffers[updated];
    }
    const TensorType& type = plan.output_types[i];
    return std::make_shared<ArenaBuffer>(type, output.sharding, pool_, BlockKind::plain,
                                         allocate(type), type.bytes());
  }

  /// Allocates a buffer that the host may write at once: no run uses its memory any more, because
  /// run() waits.
  std::uint64_t allocate(const TensorType& type) {
    return pool_->allocate(type.bytes(), BufferPool::kDeviceWrites);
  }
  void upload(const ArenaBuffer& buffer, const std::byte* elements) {
    const auto bytes = static_cast<std::size_t>(buffer.type().bytes());
    engine_->upload(buffer.offset(0), bytes,
                    [&](std::byte* memory) { std::copy_n(elements, bytes, memory); });
  }
  static std::uint64_t offset_of(const Buffer& buffer) {
    return static_cast<const ArenaBuffer&>(buffer).offset(0);
  }
  void require_own(const Buffer& buffer, const std::string& name,
                   const std::source_location* where) const {
    if (is_own(buffer)) return;
    fail(Errc::invalid_argument,
         "{} ({}) is on the chip of another Session, or of a job: call bind() of its own Session "
         "before its ops, and pass values on by to_vector(){}",
         name.empty() ? "a tensor" : name, buffer.type().to_string(),
         where == nullptr ? "" : fmt::format(" (at {})", file_line(*where)));
  }

  const Mesh mesh_{{1}, {"data"}};
  const int position_ = 0;
  const Recorder recorder_;
  JobMemory memory_;
  const ChipKind& kind_;
  std::unique_ptr<Engine> engine_;
  std::shared_ptr<BufferPool> pool_;
  CompileCache cache_;
  std::vector<Loaded> programs_;
  std::set<std::string, std::less<>> bound_;  ///< names of all parameters and buffers ever bound
  std::uint64_t step_ = 0;
  SessionCounts counts_;
};

}  // namespace

struct Session::State {
  explicit State(std::size_t memory_max) : runtime(memory_max) {}

  SessionRuntime runtime;
  TensorSession tensors{runtime};
};

namespace {

/// The state of the Session that was bound last on this thread. It is kept because the thread's
/// tensor ops may refer to it.
thread_local std::shared_ptr<void> entered;

struct Bound {
  Parameter parameter;
  const PublishedTensor* from = nullptr;
};

/// Finds the tensor in the version. Most versions have the order of the module, so index `place` is
/// tried first.
const PublishedTensor& find_published(const VersionSource& reader, const Parameter& parameter,
                                      std::size_t place, const ParameterView& view,
                                      const std::source_location& where) {
  const std::vector<PublishedTensor>& all = reader.tensors();
  const auto has_name = [&](const PublishedTensor& each) { return each.name == parameter.name(); };
  const auto found = place < all.size() && has_name(all[place])
                         ? all.begin() + static_cast<std::ptrdiff_t>(place)
                         : std::ranges::find_if(all, has_name);
  if (found == all.end()) {
    fail(Errc::not_found,
         "Session::bind: the module has '{}' {}, but version {} has no tensor of this name, only "
         "{}: publish all parameters and buffers of a module that is built and named as this one "
         "is (at {})",
         parameter.name(), parameter.type().to_string(), view.version(),
         fmt::join(view.names(), ", "), file_line(where));
  }
  if (found->type != parameter.type()) {
    fail(Errc::invalid_argument,
         "Session::bind: the module has '{}' {}, but version {} has it as {}: make the module with "
         "the sizes and dtypes of the one that is published (at {})",
         parameter.name(), parameter.type().to_string(), view.version(), found->type.to_string(),
         file_line(where));
  }
  return *found;
}

}  // namespace

Session::Session(const SessionOptions& options) : options_(options) {
  const std::size_t memory = options.memory_max;
  if (memory < kMemoryLeast || memory > kMemoryMost) {
    fail(Errc::invalid_argument,
         "SessionOptions: memory_max is {}: expected {} (1 MiB) to {} (1 TiB) bytes", memory,
         kMemoryLeast, kMemoryMost);
  }
  options_.memory_max = memory / kArenaCapacityUnit * kArenaCapacityUnit;
}

Session::~Session() {
  if (entered == state_) entered.reset();
}

Session::Session(Session&&) noexcept = default;

Session& Session::operator=(Session&& other) noexcept {
  Session old(std::move(other));
  std::swap(options_, old.options_);
  std::swap(state_, old.state_);
  return *this;
}

void Session::bind(const Module& module, const ParameterView& view, std::source_location where) {
  if (!view) {
    fail(Errc::invalid_argument,
         "Session::bind: the view is empty: pass what Parameters::newest() or at_least() returns "
         "(at {})",
         file_line(where));
  }
  if (state_ == nullptr) {
    set_thread_number([] { return int{::gettid()}; });
    state_ = std::make_shared<State>(options_.memory_max);
  }
  state_->tensors.enter(where);
  if (entered != state_) entered = state_;
  state_->tensors.run({.function = "bind", .loc = where});
  const std::shared_ptr<VersionSource>& reader = view.reader_;
  std::vector<Bound> changed;
  std::size_t place = 0;
  const auto look_at = [&](const std::vector<Parameter>& all) {
    for (const Parameter& parameter : all) {
      const BufferPtr buffer = TensorSession::find_buffer(parameter);
      const auto* present = dynamic_cast<const VersionBuffer*>(buffer.get());
      const bool is_bound = present != nullptr && state_->runtime.is_own(*present) &&
                            present->is_from(reader, view.version());
      if (!is_bound)
        changed.push_back({parameter, &find_published(*reader, parameter, place, view, where)});
      ++place;
    }
  };
  look_at(module.parameters());
  look_at(module.buffers());
  // Copies all values before the first is set, because a copy may fail for lack of memory.
  const std::byte* const elements = reader->place(view.place_);
  std::vector<BufferPtr> copies;
  for (const auto& [parameter, from] : changed) {
    copies.push_back(state_->runtime.copy(from->name, from->type, elements + from->offset, reader,
                                          view.version()));
  }
  for (std::size_t i = 0; i < copies.size(); ++i) {
    TensorSession::set_buffer(changed[i].parameter, std::move(copies[i]));
  }
}

SessionCounts Session::counts() const {
  return state_ == nullptr ? SessionCounts{} : state_->runtime.counts();
}

}  // namespace weft
