#include <weft/actor/parameters.hpp>

#include <weft/actor/actor_context.hpp>

#include <algorithm>
#include <atomic>
#include <mutex>

#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>

#include "actors/user/actor_host.hpp"
#include "actors/user/job_wait.hpp"

namespace weft {
namespace {

const PublishedTensor& find_tensor(const VersionSource* reader, std::string_view name) {
  if (reader == nullptr) {
    fail(Errc::not_found, "ParameterView: an empty view has no tensor \"{}\"", name);
  }
  const auto& tensors = reader->tensors();
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
  return {reader_->place(place_) + tensor.offset, static_cast<std::size_t>(tensor.type.bytes())};
}

HostTensor ParameterView::tensor(std::string_view name) const {
  const PublishedTensor& tensor = find_tensor(reader_.get(), name);
  const std::byte* begin = reader_->place(place_) + tensor.offset;
  return {ConstElementSpan(tensor.type.dtype, begin, tensor.type.num_elements()), tensor.type.shape,
          std::make_shared<const ParameterView>(*this)};
}

std::vector<std::string> ParameterView::names() const {
  std::vector<std::string> names;
  if (reader_ == nullptr) return names;
  for (const PublishedTensor& tensor : reader_->tensors()) names.push_back(tensor.name);
  return names;
}

struct Parameters::Source {
  Source(JobWait its_wait, std::string its_name)
      : wait(std::move(its_wait)), name(std::move(its_name)) {}

  JobWait wait;
  std::string name;
  std::mutex mutex{};
  std::shared_ptr<VersionSource> opened{};  ///< doesn't change once `reader` is set
  std::atomic<VersionSource*> reader = nullptr;

  /// Opens what the job publishes; returns null if the job hasn't made its Publisher yet.
  VersionSource* open() {
    if (VersionSource* known = reader.load(std::memory_order_acquire)) return known;
    const std::lock_guard lock(mutex);
    if (opened == nullptr) {
      opened = wait.host().open_versions(wait.job(), name);
      reader.store(opened.get(), std::memory_order_release);
    }
    return opened.get();
  }

  [[noreturn]] void fail_late(std::uint64_t version) const {
    const VersionSource* its = reader.load();
    const auto newest = its == nullptr ? std::nullopt : its->newest();
    fail(Errc::timeout,
         "{}: job {} has not published version {} or a later one within {} s; {}. It publishes "
         "under these names: {}",
         wait.what(), wait.job(), version, wait.timeout_s(),
         newest ? fmt::format("its newest version is {}", *newest) : "it has published none",
         fmt::join(wait.host().published_names(wait.job()), ", "));
  }

  /// Waits a moment for `version` or a later one.
  void sleep(VersionSource* from, std::uint32_t seen, std::uint64_t version,
             JobWait::Clock::time_point deadline) const {
    if (from == nullptr) return wait.host().await_job(wait, deadline);
    if (from->has_job_ended()) {
      const auto newest = from->newest();
      if (newest && *newest >= version) return;
      wait.let_stop_come();
      fail(Errc::unavailable, "{}: job {} has ended; {}", wait.what(), wait.job(),
           newest ? fmt::format("its last version is {}", *newest) : "it has published no version");
    }
    wait.host().await(
        [&](std::chrono::nanoseconds at_most) {
          from->wait_for_news(seen, at_most);
          return from->news() != seen;
        },
        deadline);
  }
};

Parameters::Parameters(std::string_view job, std::string_view name, ParametersOptions options)
    : Parameters(job, name, std::move(options), std::make_shared<JobHost>()) {}

Parameters::Parameters(std::string_view job, std::string_view name, ParametersOptions options,
                       std::shared_ptr<JobHost> host) {
  require_published_name(name, "Parameters");
  source_ =
      std::make_shared<Source>(JobWait(fmt::format("Parameters \"{}\"", name), job,
                                       options.timeout_s, std::move(options.stop), std::move(host)),
                               std::string(name));
}

ParameterView Parameters::newest() const { return at_least(0); }

ParameterView Parameters::at_least(std::uint64_t version) const {
  Source& source = *source_;
  std::optional<JobWait::Clock::time_point> deadline;
  std::optional<ShownJobWait> shown;
  for (;;) {
    VersionSource* const reader = source.open();
    const std::uint32_t seen = reader == nullptr ? 0 : reader->news();
    if (reader != nullptr) {
      if (const auto held = reader->hold_newest()) {
        if (held->version >= version) return {source.opened, held->version, held->place};
        reader->release(held->place);
      }
    }
    if (!deadline) {
      deadline = source.wait.begin();
      shown.emplace(source.wait, source.name, false);
    }
    if (source.wait.is_late(*deadline)) source.fail_late(version);
    source.sleep(reader, seen, version, *deadline);
  }
}

std::optional<std::uint64_t> Parameters::version() const {
  const VersionSource* reader = source_->open();
  return reader == nullptr ? std::nullopt : reader->newest();
}

std::uint64_t Parameters::skipped() const {
  const VersionSource* reader = source_->open();
  return reader == nullptr ? 0 : reader->skipped();
}

bool Parameters::has_ended() const {
  if (const VersionSource* reader = source_->open()) return reader->has_job_ended();
  try {
    source_->wait.require_running();
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
  process_->require_host_0(fmt::format("parameters(\"{}\")", name));
  return {facts_.job, name, {.stop = stop_}, process_};
}

}  // namespace weft
