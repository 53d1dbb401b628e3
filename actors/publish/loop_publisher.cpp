#include "actors/publish/loop_publisher.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/process/job_thread.hpp"
#include "spmd/tensor/node.hpp"
#include "spmd/tensor/trace.hpp"
#include "transport/memory/wait.hpp"
#include "transport/storage/box_runs.hpp"
#include "transport/storage/shard_owners.hpp"

namespace weft {
namespace {

/// The number of bits of a publication's number that count within a generation. The bits above are
/// the generation, so later generations have greater numbers.
constexpr int kGenerationShift = 40;

std::vector<PublishedTensor> published_tensors(const LoopPublisherOptions& options,
                                               const std::source_location& where) {
  std::vector<PublishedTensor> tensors;
  std::set<std::string_view> names;
  for (const Parameter& tensor : options.tensors) {
    const NodePtr& node = node_of(tensor, where);
    if (!names.insert(node->name).second) {
      fail(
          Errc::invalid_argument,
          "Publisher \"{}\" at {}: two tensors are named '{}'; name the root modules of two models "
          "apart, as in Module(\"teacher\")",
          options.name, file_line(where), node->name);
    }
    tensors.push_back({.name = node->name, .type = node->type});
  }
  if (tensors.empty()) {
    fail(Errc::invalid_argument, "Publisher \"{}\" at {}: expected one tensor or more",
         options.name, file_line(where));
  }
  return lay_out(std::move(tensors));
}

std::string publisher_text(const LoopPublisherOptions& options,
                           const std::vector<PublishedTensor>& tensors) {
  std::string text = fmt::format("Publisher \"{}\"\n", options.name);
  for (const PublishedTensor& tensor : tensors) {
    text += fmt::format("publishes '{}' {}\n", tensor.name, tensor.type.to_string());
  }
  return text;
}

/// Opens the segments if an earlier generation has made them, otherwise makes them.
PublishedMemory open_or_create(const LoopPublisherOptions& options,
                               const std::vector<PublishedTensor>& tensors) {
  try {
    return PublishedMemory::open(options.job_id, options.name, false);
  } catch (const Error& error) {
    if (error.code() != Errc::not_found) throw;
  }
  PublishedMemory::remove(options.job_id, options.name);  // removes what a killed worker 0 has left
  return PublishedMemory::create(options.job_id, options.name, tensors, options.num_workers);
}

}  // namespace

LoopPublisher::LoopPublisher(WorkerRuntime& runtime, LoopPublisherOptions options,
                             const std::source_location& where)
    : runtime_(runtime),
      options_(std::move(options)),
      where_(where),
      memory_(make_memory(where)),
      writer_(memory_, options_.worker),
      publications_(runtime.generation() << kGenerationShift) {
  thread_ = start_job_thread("weft.publish", [this] { run(); });
}

LoopPublisher::~LoopPublisher() {
  {
    const std::lock_guard lock(mutex_);
    must_stop_ = true;
  }
  changed_.notify_all();
}

/// Makes or opens the memory. Worker 0 makes it, and the others open it when all workers have
/// agreed, because then it exists.
PublishedMemory LoopPublisher::make_memory(const std::source_location& where) const {
  require_published_name(options_.name, "Publisher");
  const std::vector<PublishedTensor> tensors = published_tensors(options_, where);
  std::optional<PublishedMemory> memory;
  if (options_.worker == 0) memory.emplace(open_or_create(options_, tensors));
  runtime_.require_alike(publisher_text(options_, tensors),
                         {.function = "Publisher", .loc = where});
  if (!memory) memory.emplace(PublishedMemory::open(options_.job_id, options_.name, false));
  if (memory->tensors() != tensors ||
      memory->worker_count() != static_cast<std::uint32_t>(options_.num_workers)) {
    fail(Errc::invalid_argument,
         "Publisher \"{}\" at {}: the job has published other tensors under this name before it "
         "lost a worker: publish tensors of the same names, types and order in all generations",
         options_.name, file_line(where));
  }
  return std::move(*memory);
}

bool LoopPublisher::is_pending(const std::source_location& where) const {
  const Trace& trace = Trace::current(where);
  return std::ranges::any_of(options_.tensors, [&](const Parameter& tensor) {
    return trace.is_pending(*node_of(tensor, where));
  });
}

void LoopPublisher::publish(const std::source_location& where) {
  runtime_.require_loop_thread("publish", where);
  if (is_pending(where)) {
    is_wanted_ = true;
    wanted_at_ = where;
  } else {
    add_copy(where);
  }
}

void LoopPublisher::step_ended() {
  if (std::exchange(is_wanted_, false)) add_copy(wanted_at_);
}

void LoopPublisher::add_copy(const std::source_location& where) {
  const auto begin = std::chrono::steady_clock::now();
  wait_for_copies(kWaitingMax - 1);
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
  MetricsTable& metrics = runtime_.metrics();
  metrics.sample("PublishWait", MetricUnit::seconds, waited.count());
  metrics.set("PublishedVersions", memory_.header().published.load(std::memory_order_relaxed));
  metrics.set("SkippedVersions", memory_.header().skipped.load(std::memory_order_relaxed));
  Copy copy{.publication = ++publications_,
            .version = runtime_.step(),
            .run = runtime_.runs(),
            .held = std::make_shared<HeldBuffers>(true)};
  copy.shards =
      own_state(runtime_, options_.tensors, *copy.held, all_positions(*runtime_.mesh()), where)
          .shards;
  runtime_.hold(copy.held);
  {
    const std::lock_guard lock(mutex_);
    copies_.push_back(std::move(copy));
  }
  changed_.notify_all();
}

std::string LoopPublisher::count_text() const {
  constexpr std::uint64_t kCountMask = (std::uint64_t{1} << kGenerationShift) - 1;
  return fmt::format("Publisher \"{}\" has published {} versions\n", options_.name,
                     publications_ & kCountMask);
}

void LoopPublisher::finish() { wait_for_copies(0); }

void LoopPublisher::wait_for_copies(std::size_t most) {
  std::unique_lock lock(mutex_);
  while (copies_.size() > most && !error_) {
    if (runtime_.memory().aborted()) {
      fail(Errc::peer_lost, "{}; Publisher \"{}\" waited for the copy of version {}",
           runtime_.memory().abort_reason(), options_.name, copies_.front().version);
    }
    changed_.wait_for(lock, kSleepSlice);
  }
  if (error_) std::rethrow_exception(error_);
}

void LoopPublisher::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return must_stop_ || !copies_.empty(); });
    if (copies_.empty()) return;
    Copy& copy = copies_.front();  // stays valid: only this thread removes copies
    const bool is_dropped = must_stop_ || error_ != nullptr;
    lock.unlock();
    std::exception_ptr error;
    try {
      if (!is_dropped) carry_out(copy);
    } catch (...) {
      error = std::current_exception();
    }
    // Only the loop's thread may free the buffers, and it does so after held->end(). Therefore this
    // thread drops its references before it calls held->end().
    copy.shards.clear();
    copy.held->end();
    lock.lock();
    if (error && !error_) error_ = error;
    copies_.pop_front();
    changed_.notify_all();
  }
}

bool LoopPublisher::must_leave() const { return must_stop_ || runtime_.memory().aborted(); }

void LoopPublisher::carry_out(Copy& copy) {
  runtime_.wait_for_run(copy.run);
  if (options_.worker == 0) {
    writer_.decide(copy.publication, copy.version);
  } else if (!await_decision(copy)) {
    return;
  }
  std::byte* const version = writer_.destination(copy.publication, copy.version);
  if (version == nullptr) return;
  copy_to(version, copy);
  writer_.copied(copy.publication);
  if (options_.worker != 0) return;
  for (;;) {
    const std::uint32_t seen = writer_.turns();
    if (writer_.publish(copy.publication, copy.version) || must_leave()) return;
    writer_.wait_for_news(seen, kSleepSlice);
  }
}

/// Waits until worker 0 has decided about this version. Returns false if the loop must be left.
bool LoopPublisher::await_decision(const Copy& copy) {
  for (;;) {
    const std::uint32_t seen = writer_.turns();
    if (writer_.is_decided(copy.publication)) return true;
    if (must_leave()) return false;
    writer_.wait_for_news(seen, kSleepSlice);
  }
}

void LoopPublisher::copy_to(std::byte* version, Copy& copy) const {
  for (OwnShard& shard : copy.shards) {
    if (shard.read) shard.read();
    const PublishedTensor& tensor = memory_.tensors()[shard.tensor];
    const auto size = static_cast<std::size_t>(byte_size(tensor.type.dtype));
    const Box whole = whole_box(tensor.type.shape).box;
    const BoxRuns runs(whole, {.box = shard.box, .room = shard.room});
    runs.each(0, tensor.type.num_elements(),
              [&](std::int64_t to, std::int64_t from, std::int64_t count) {
                std::memcpy(version + tensor.offset + static_cast<std::size_t>(to) * size,
                            shard.elements.get() + static_cast<std::size_t>(from) * size,
                            static_cast<std::size_t>(count) * size);
              });
  }
}

}  // namespace weft
