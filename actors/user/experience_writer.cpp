#include <weft/actor/experience_writer.hpp>

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/ranges.h>

#include <weft/actor/actor_context.hpp>
#include <weft/tensor/error.hpp>

#include "actors/user/actor_host.hpp"
#include "actors/user/job_wait.hpp"

namespace weft {
Rows::Rows(std::shared_ptr<RowSink> sender, std::vector<std::uint32_t> blocks, std::int64_t size,
           std::uint64_t version)
    : sender_(std::move(sender)), blocks_(std::move(blocks)), size_(size), version_(version) {}

Rows::Rows(Rows&&) noexcept = default;

Rows& Rows::operator=(Rows&& other) noexcept {
  std::swap(sender_, other.sender_);
  std::swap(blocks_, other.blocks_);
  std::swap(size_, other.size_);
  std::swap(version_, other.version_);
  return *this;
}

Rows::~Rows() {
  if (sender_ != nullptr) sender_->give_back(blocks_);
}

std::span<std::byte> Rows::find(std::string_view field, DType dtype, std::int64_t row) {
  if (sender_ == nullptr) {
    fail(Errc::invalid_argument, "Rows: \"{}\" of row {}: the rows have been published", field,
         row);
  }
  const std::vector<PublishedTensor>& fields = sender_->fields();
  const auto found = std::ranges::find(fields, field, &PublishedTensor::name);
  if (found == fields.end()) {
    std::vector<std::string_view> names;
    for (const PublishedTensor& each : fields) names.emplace_back(each.name);
    fail(Errc::not_found, "Rows: there is no field \"{}\"; the rows have {}", field,
         fmt::join(names, ", "));
  }
  if (found->type.dtype != dtype) {
    fail(Errc::invalid_argument, "Rows: \"{}\" is {}, but was asked for as {}", field,
         found->type.to_string(), to_string(dtype));
  }
  if (row < 0 || row >= size_) {
    fail(Errc::invalid_argument, "Rows: row = {}: expected 0 to {}", row, size_ - 1);
  }
  std::byte* const begin = sender_->row(blocks_, static_cast<std::uint64_t>(row));
  return {begin + found->offset, static_cast<std::size_t>(found->type.bytes())};
}

void Rows::publish() {
  if (sender_ == nullptr) {
    fail(Errc::invalid_argument, "Rows: publish() was called a second time");
  }
  sender_->send(blocks_, static_cast<std::uint64_t>(size_), version_);
  sender_.reset();
}

struct ExperienceWriter::Source {
  Source(JobWait its_wait, std::string its_name)
      : wait(std::move(its_wait)), name(std::move(its_name)) {}

  JobWait wait;
  std::string name;
  std::mutex mutex{};
  std::shared_ptr<RowSink> sender{};  // guarded by mutex

  /// Opens the job's receiver of rows; returns null if the loop hasn't called experience() yet.
  std::shared_ptr<RowSink> open() {
    const std::lock_guard lock(mutex);
    if (sender == nullptr) sender = wait.host().open_rows(wait.job(), name);
    return sender;
  }
};

ExperienceWriter::ExperienceWriter(std::string_view job, std::string_view name,
                                   ExperienceWriterOptions options)
    : ExperienceWriter(job, name, std::move(options), std::make_shared<JobHost>()) {}

ExperienceWriter::ExperienceWriter(std::string_view job, std::string_view name,
                                   ExperienceWriterOptions options, std::shared_ptr<JobHost> host) {
  require_published_name(name, "ExperienceWriter");
  source_ =
      std::make_shared<Source>(JobWait(fmt::format("ExperienceWriter \"{}\"", name), job,
                                       options.timeout_s, std::move(options.stop), std::move(host)),
                               std::string(name));
}

Rows ExperienceWriter::loan(std::int64_t count, std::uint64_t version) {
  const JobWait& wait = source_->wait;
  std::optional<JobWait::Clock::time_point> deadline;
  std::optional<ShownJobWait> shown;
  for (;;) {
    const std::shared_ptr<RowSink> sender = source_->open();
    const std::uint32_t seen = sender == nullptr ? 0 : sender->news();
    if (sender != nullptr) {
      const auto most = static_cast<std::int64_t>(sender->capacity());
      if (count < 1 || count > most) {
        fail(Errc::invalid_argument,
             "{}: loan({} rows): expected 1 to {}, which ExperienceOptions::capacity sets",
             wait.what(), count, most);
      }
      if (sender->has_job_ended()) {
        wait.let_stop_come();
        fail(Errc::unavailable, "{}: job {} has ended", wait.what(), wait.job());
      }
      if (auto blocks = sender->take(static_cast<std::uint64_t>(count))) {
        return {sender, std::move(*blocks), count, version};
      }
    }
    if (!deadline) {
      deadline = wait.begin();
      shown.emplace(wait, source_->name, true);
    }
    if (wait.is_late(*deadline)) {
      fail(Errc::timeout, "{}: job {} has had no room for {} rows within {} s: {}", wait.what(),
           wait.job(), count, wait.timeout_s(),
           sender == nullptr ? "its loop hasn't called experience() with this name"
                             : "its loop uses rows more slowly than they are made, or waits");
    }
    if (sender == nullptr) {
      wait.host().await_job(wait, *deadline);
      continue;
    }
    wait.host().await(
        [&](std::chrono::nanoseconds at_most) {
          sender->wait_for_news(seen, at_most);
          return sender->news() != seen;
        },
        *deadline);
  }
}

ExperienceWriter ActorContext::experience(std::string_view name) const {
  if (facts_.job.empty()) {
    fail(Errc::invalid_argument,
         "experience(\"{}\"): mesh \"{}\" was spawned without a job: set "
         "SpawnOptions::lives_with = &job, or make weft::ExperienceWriter(job_id, \"{}\")",
         name, facts_.mesh, name);
  }
  process_->require_host_0(fmt::format("experience(\"{}\")", name));
  return {facts_.job, name, {.stop = stop_}, process_};
}

}  // namespace weft
