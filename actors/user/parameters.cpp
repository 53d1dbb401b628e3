#include <weft/actor/parameters.hpp>

#include <weft/actor/actor_context.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>

#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>

#include "actors/user/thread_role.hpp"
#include "transport/job/job_folder.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/memory/wait.hpp"
#include "transport/published/version_reader.hpp"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

/// Returns the process's reader of the name. All Parameters share it, so that a process is one
/// reader. Throws the errors of VersionReader.
std::shared_ptr<VersionReader> open_reader(const std::string& job, const std::string& name) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, std::string>, std::weak_ptr<VersionReader>> readers;
  const std::lock_guard lock(mutex);
  std::weak_ptr<VersionReader>& known = readers[{job, name}];
  std::shared_ptr<VersionReader> reader = known.lock();
  if (reader == nullptr) known = reader = std::make_shared<VersionReader>(job, name);
  return reader;
}

/// Throws if the job can't publish anything any more, because it has ended or never existed.
void require_running(const std::string& job, const std::string& name) {
  if (Segment::list(fmt::format("weft-{}-", job)).empty()) {
    fail(Errc::not_found,
         "Parameters \"{}\": this user has no running job {} on this host, or it has ended; `weft "
         "ps` lists the jobs",
         name, job);
  }
  const std::string root = JobMemory::control_root_of(job);
  if (root.empty() || JobLock::is_held(root, job)) return;
  fail(Errc::unavailable, "Parameters \"{}\": job {} has ended without publishing it", name, job);
}

void require_may_wait(const std::string& name) {
  if (ThreadRole::current().may_block) return;
  fail(Errc::invalid_argument,
       "Parameters \"{}\": the version isn't there yet, and an actor that shares its thread with "
       "others may not wait: spawn its mesh with own_thread = true, or wait before it is spawned",
       name);
}

const PublishedTensor& find_tensor(const VersionReader* reader, std::string_view name) {
  if (reader == nullptr) {
    fail(Errc::not_found, "ParameterView: an empty view has no tensor \"{}\"", name);
  }
  const auto& tensors = reader->memory().tensors();
  const auto found = std::ranges::find(tensors, name, &PublishedTensor::name);
  if (found != tensors.end()) return *found;
  std::vector<std::string_view> names;
  for (const PublishedTensor& tensor : tensors) names.emplace_back(tensor.name);
  fail(Errc::not_found, "ParameterView: there is no tensor \"{}\"; the job publishes {}", name,
       fmt::join(names, ", "));
}

}  // namespace

ParameterView::ParameterView(const ParameterView& other)
    : reader_(other.reader_), version_(other.version_), place_(other.place_) {
  if (reader_ != nullptr) reader_->hold_again(place_);
}

ParameterView::~ParameterView() {
  if (reader_ != nullptr) reader_->release(place_);
}

std::span<const std::byte> ParameterView::find(std::string_view name, DType dtype,
                                               const Shape* shape) const {
  const PublishedTensor& tensor = find_tensor(reader_.get(), name);
  if (tensor.type.dtype != dtype || (shape != nullptr && tensor.type.shape != *shape)) {
    fail(Errc::invalid_argument, "ParameterView: \"{}\" is {}, but was asked for as {}", name,
         tensor.type.to_string(),
         TensorType{dtype, shape == nullptr ? tensor.type.shape : *shape}.to_string());
  }
  return {reader_->memory().place(place_) + tensor.offset,
          static_cast<std::size_t>(tensor.type.bytes())};
}

HostTensor ParameterView::tensor(std::string_view name) const {
  const PublishedTensor& tensor = find_tensor(reader_.get(), name);
  const std::byte* begin = reader_->memory().place(place_) + tensor.offset;
  return {ConstElementSpan(tensor.type.dtype, begin, tensor.type.num_elements()), tensor.type.shape,
          std::make_shared<const ParameterView>(*this)};
}

std::vector<std::string> ParameterView::names() const {
  std::vector<std::string> names;
  if (reader_ == nullptr) return names;
  for (const PublishedTensor& tensor : reader_->memory().tensors()) names.push_back(tensor.name);
  return names;
}

struct Parameters::Source {
  std::string job;
  std::string name;
  ParametersOptions options;
  std::mutex mutex;
  std::shared_ptr<VersionReader> opened;  ///< doesn't change once `reader` is set
  std::atomic<VersionReader*> reader = nullptr;

  /// Returns null if the job hasn't made its Publisher yet.
  VersionReader* open() {
    if (VersionReader* known = reader.load(std::memory_order_acquire)) return known;
    const std::lock_guard lock(mutex);
    if (opened == nullptr) {
      try {
        opened = open_reader(job, name);
      } catch (const Error& error) {
        if (error.code() != Errc::not_found) throw;
        return nullptr;
      }
      reader.store(opened.get(), std::memory_order_release);
    }
    return opened.get();
  }

  void require_in_time(std::uint64_t version, Clock::time_point deadline) const {
    if (options.stop.stop_requested()) {
      fail(Errc::cancelled, "Parameters \"{}\": the wait for a version was cancelled", name);
    }
    if (Clock::now() < deadline) return;
    const VersionReader* its = reader.load();
    const auto newest = its == nullptr ? std::nullopt : its->newest();
    fail(
        Errc::timeout,
        "Parameters \"{}\": job {} has not published version {} or a later one within {} s; {}. It "
        "publishes under these names: {}",
        name, job, version, options.timeout_s,
        newest ? fmt::format("its newest version is {}", *newest) : "it has published none",
        fmt::join(PublishedMemory::names(job), ", "));
  }

  /// Waits a moment for a further version.
  void wait(VersionReader* from, std::uint32_t seen, std::uint64_t version) const {
    if (from == nullptr) {
      require_running(job, name);
      const std::atomic<std::uint32_t> nothing = 0;
      return sleep_on(nothing, 0, kSleepSlice);
    }
    if (from->memory().has_job_ended()) {
      const auto newest = from->newest();
      if (newest && *newest >= version) return;
      fail(Errc::unavailable, "Parameters \"{}\": job {} has ended; {}", name, job,
           newest ? fmt::format("its last version is {}", *newest) : "it has published no version");
    }
    from->sleep(seen, kSleepSlice);
  }
};

Parameters::Parameters(std::string_view job, std::string_view name, ParametersOptions options)
    : source_(std::make_shared<Source>()) {
  require_published_name(name, "Parameters");
  if (!is_job_id(job)) {
    fail(Errc::invalid_argument,
         "Parameters \"{}\": job = \"{}\": expected the {} hex digits of JobInfo::id", name, job,
         kJobIdLength);
  }
  source_->job = job;
  source_->name = name;
  source_->options = std::move(options);
}

ParameterView Parameters::newest() const { return at_least(0); }

ParameterView Parameters::at_least(std::uint64_t version) const {
  Source& source = *source_;
  std::optional<Clock::time_point> deadline;
  for (;;) {
    VersionReader* const reader = source.open();
    const std::uint32_t seen = reader == nullptr ? 0 : reader->news();
    if (reader != nullptr) {
      if (const auto held = reader->hold_newest()) {
        if (held->version >= version) return {source.opened, held->version, held->place};
        reader->release(held->place);
      }
    }
    if (!deadline) {
      require_may_wait(source.name);
      deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                    std::chrono::duration<double>(source.options.timeout_s));
    }
    source.require_in_time(version, *deadline);
    source.wait(reader, seen, version);
  }
}

std::optional<std::uint64_t> Parameters::version() const {
  const VersionReader* reader = source_->open();
  return reader == nullptr ? std::nullopt : reader->newest();
}

std::uint64_t Parameters::skipped() const {
  const VersionReader* reader = source_->open();
  return reader == nullptr ? 0 : reader->memory().header().skipped.load(std::memory_order_relaxed);
}

bool Parameters::has_ended() const {
  if (const VersionReader* reader = source_->open()) return reader->memory().has_job_ended();
  try {
    require_running(source_->job, source_->name);
  } catch (const Error& error) {
    if (error.code() != Errc::not_found && error.code() != Errc::unavailable) throw;
    return true;
  }
  return false;
}

Parameters ActorContext::parameters(std::string_view name) const {
  if (facts_.job.empty()) {
    fail(Errc::invalid_argument,
         "parameters(\"{}\"): mesh \"{}\" was spawned without a job: set "
         "SpawnOptions::lives_with = &job, or make weft::Parameters(job_id, \"{}\")",
         name, facts_.mesh, name);
  }
  return {facts_.job, name, {.stop = stop_}};
}

}  // namespace weft
