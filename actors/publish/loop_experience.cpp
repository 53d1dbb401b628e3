#include "actors/publish/loop_experience.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/process/job_thread.hpp"
#include "actors/process/log.hpp"
#include "data/items/read_wanted.hpp"
#include "transport/memory/wait.hpp"
#include "transport/published/row_order.hpp"
#include "transport/published/row_reader.hpp"
#include "transport/state/commits.hpp"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

/// The size of the dataset. It is so large that an epoch never ends.
constexpr std::int64_t kEndlessRows = std::int64_t{1} << 48;
/// The least time between two searches for blocks of senders that have died.
constexpr std::chrono::milliseconds kCollectInterval{100};

class ExperienceRows : public Dataset {
 public:
  ExperienceRows(std::string name, std::vector<Field> fields, std::shared_ptr<RowMemory> memory,
                 std::shared_ptr<std::atomic<bool>> is_closed, const JobMemory& job, int worker)
      : name_(std::move(name)),
        fields_(std::move(fields)),
        memory_(std::move(memory)),
        is_closed_(std::move(is_closed)),
        job_(job),
        reader_(*memory_, worker) {}

  std::string name() const override { return name_; }
  std::int64_t size() const override { return kEndlessRows; }
  const std::vector<Field>& fields() const override { return fields_; }
  bool is_sequential() const override { return true; }

 private:
  void read_item(const Item& item, ItemMemory out) const override {
    for (;;) {
      const std::uint32_t seen = reader_.news();
      if (reader_.read(static_cast<std::uint64_t>(item.index), out)) return;
      if (*is_closed_ || !ReadWanted::is_wanted()) {
        fail(Errc::cancelled, "the loop was left before this row had arrived");
      }
      if (job_.aborted()) fail(Errc::peer_lost, "{}", job_.abort_reason());
      reader_.wait_for_news(seen, kSleepSlice);
    }
  }

  const std::string name_;
  const std::vector<Field> fields_;
  const std::shared_ptr<RowMemory> memory_;
  const std::shared_ptr<std::atomic<bool>> is_closed_;
  const JobMemory& job_;  // not used after is_closed_ was set
  const RowReader reader_;
};

std::vector<PublishedTensor> row_fields(const LoopExperienceOptions& options,
                                        const std::source_location& where) {
  std::vector<PublishedTensor> fields;
  std::set<std::string_view> names;
  for (const Field& field : options.fields) {
    if (field.name.empty() || !names.insert(field.name).second) {
      fail(Errc::invalid_argument,
           "experience(\"{}\") at {}: field {} is named \"{}\": expected names that aren't empty, "
           "each once",
           options.name, file_line(where), fields.size(), field.name);
    }
    fields.push_back({.name = field.name, .type = field.type});
  }
  if (fields.empty()) {
    fail(Errc::invalid_argument, "experience(\"{}\") at {}: expected one field or more",
         options.name, file_line(where));
  }
  if (options.options.capacity < 1) {
    fail(Errc::invalid_argument, "experience(\"{}\") at {}: capacity = {}: expected 1 or more",
         options.name, file_line(where), options.options.capacity);
  }
  return lay_out(std::move(fields), kRowAlignment);
}

RowMemory open_or_create_rows(const LoopExperienceOptions& options,
                              const std::vector<PublishedTensor>& fields) {
  try {
    return RowMemory::open(options.job_id, options.name);
  } catch (const Error& error) {
    if (error.code() != Errc::not_found) throw;
  }
  RowMemory::remove(options.job_id, options.name);  // removes what a killed worker 0 has left
  return RowMemory::create(options.job_id, options.name,
                           {.fields = fields,
                            .capacity = static_cast<std::uint64_t>(options.options.capacity),
                            .max_lag = options.options.max_lag.value_or(kNoLagLimit),
                            .worker_count = options.num_workers});
}

}  // namespace

LoopExperience::LoopExperience(WorkerRuntime& runtime, const JobLoaders& loaders,
                               LoopExperienceOptions options, const std::source_location& where)
    : runtime_(runtime),
      loaders_(loaders),
      options_(std::move(options)),
      keeps_state_(runtime.state() != nullptr),
      memory_(std::make_shared<RowMemory>(make_memory(where))),
      is_closed_(std::make_shared<std::atomic<bool>>(false)),
      dataset_(std::make_shared<const ExperienceRows>(experience_name(options_.name),
                                                      options_.fields, memory_, is_closed_,
                                                      runtime.memory(), options_.worker)) {
  RowHeader& header = memory_->header();
  header.used[options_.worker].store(0);
  if (options_.worker != 0) return;
  header.step.store(runtime.step());
  // The first row of the job. A job that resumes from a checkpoint sets another one: the first that
  // it reads.
  std::uint64_t none = kNoRow;
  if (runtime.step() == 0) header.base.compare_exchange_strong(none, 0);
  thread_ = start_job_thread("weft.rows", [this] { order_rows(); });
}

LoopExperience::~LoopExperience() {
  *is_closed_ = true;
  must_stop_ = true;
  memory_->tell_news();
  memory_->call_worker_0();
}

/// Makes or opens the memory. Worker 0 makes it, and the others open it when all workers have
/// agreed, because then it exists.
RowMemory LoopExperience::make_memory(const std::source_location& where) const {
  require_published_name(options_.name, "experience()");
  const std::vector<PublishedTensor> fields = row_fields(options_, where);
  const std::uint64_t max_lag = options_.options.max_lag.value_or(kNoLagLimit);
  std::optional<RowMemory> memory;
  if (options_.worker == 0) memory.emplace(open_or_create_rows(options_, fields));
  std::string text = fmt::format("experience(\"{}\") of {} rows, max_lag {}\n", options_.name,
                                 options_.options.capacity, max_lag);
  for (const PublishedTensor& field : fields) {
    text += fmt::format("field '{}' {}\n", field.name, field.type.to_string());
  }
  runtime_.require_alike(text, {.function = "experience", .loc = where});
  if (!memory) memory.emplace(RowMemory::open(options_.job_id, options_.name));
  if (memory->fields() != fields || memory->max_lag() != max_lag) {
    fail(Errc::invalid_argument,
         "experience(\"{}\") at {}: the job had other fields or another max_lag before it lost a "
         "worker: use the same in all generations",
         options_.name, file_line(where));
  }
  return std::move(*memory);
}

/// Notes how many rows the steps so far have used, according to the positions of the DeviceLoaders.
void LoopExperience::step_ended() {
  RowHeader& header = memory_->header();
  MetricsTable& metrics = runtime_.metrics();
  metrics.set("ExperienceRows", header.sent_rows.load(std::memory_order_relaxed));
  metrics.set("ExperienceDropped", header.dropped_rows.load(std::memory_order_relaxed));
  metrics.set("ExperienceLag", header.lag.load(std::memory_order_relaxed));
  metrics.set("ExperienceWriterWaits", header.sender_waits.load(std::memory_order_relaxed));
  std::optional<std::uint64_t> rows;
  std::uint64_t batch_rows = 0;
  for (const StoredLoader& loader : loaders_.made()) {
    if (loader.dataset.find(dataset_->name()) == std::string::npos) continue;
    const std::uint64_t taken = loader.taken * static_cast<std::uint64_t>(loader.batch_size);
    rows = std::min(rows.value_or(taken), taken);
    batch_rows = static_cast<std::uint64_t>(loader.batch_size);
  }
  if (rows) header.used[options_.worker].store(*rows, std::memory_order_release);
  if (options_.worker == 0) {
    header.step.store(runtime_.step(), std::memory_order_relaxed);
    header.batch_rows.store(batch_rows, std::memory_order_relaxed);
    const std::lock_guard lock(mutex_);
    if (rows && keeps_state_) used_.push_back({.step = runtime_.step(), .rows = *rows});
  }
  memory_->call_worker_0();
}

/// Returns the number of rows that no loop needs any more: those that the committed steps have used
/// or, if the job keeps no state, those that all workers have used.
std::uint64_t LoopExperience::releasable() {
  if (!keeps_state_) {
    const std::span used(memory_->header().used, memory_->worker_count());
    std::uint64_t least = kNoRow;
    for (const auto& rows : used) least = std::min(least, rows.load(std::memory_order_acquire));
    return least;
  }
  const std::uint64_t committed = common_step(runtime_.memory());
  std::uint64_t rows = 0;
  const std::lock_guard lock(mutex_);
  for (; !used_.empty() && used_.front().step <= committed; used_.pop_front()) {
    rows = used_.front().rows;
  }
  return rows;
}

void LoopExperience::order_rows() {
  RowOrder order(*memory_);
  const RowHeader& header = memory_->header();
  std::uint64_t waits = 0;
  Clock::time_point collected{};
  while (!must_stop_) {
    const std::uint32_t seen = header.calls.load(std::memory_order_seq_cst);
    order.take();
    order.release(releasable());
    const std::uint64_t waits_now = header.sender_waits.load(std::memory_order_relaxed);
    if (waits_now != waits && Clock::now() - collected > kCollectInterval) {
      order.collect();
      waits = waits_now;
      collected = Clock::now();
    }
    sleep_on(header.calls, seen, kSleepSlice);
  }
}

}  // namespace weft
