#pragma once
/// SimulatedJob: the job that the actors of a simulation see, with its versions and its memory for
/// rows.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <weft/actor/test_job.hpp>
#include <weft/job/job.hpp>

#include "transport/published/version_source.hpp"

namespace weft {

class ActorSimulation;

/// Memory whose address is a multiple of kPublishedAlignment.
class SimulatedMemory {
 public:
  explicit SimulatedMemory(std::size_t bytes) : lines_((bytes + sizeof(Line) - 1) / sizeof(Line)) {}
  std::byte* data() { return reinterpret_cast<std::byte*>(lines_.data()); }

 private:
  struct alignas(kPublishedAlignment) Line {
    std::array<std::byte, kPublishedAlignment> bytes;
  };
  std::vector<Line> lines_;
};

/// The versions that are published under one name. Views hold a version, and may outlive the
/// simulation.
class SimulatedVersions final : public VersionSource {
 public:
  explicit SimulatedVersions(std::vector<PublishedTensor> tensors);

  /// Publishes a version. Returns false if no place is free. The tensors must have the types of
  /// tensors().
  bool publish(std::uint64_t version, const TestJob::Tensors& tensors);
  void end();

  const std::vector<PublishedTensor>& tensors() const override { return tensors_; }
  const std::byte* place(std::uint32_t place) const override { return places_[place]->data(); }
  std::optional<std::uint64_t> newest() const noexcept override;
  std::optional<Held> hold_newest() noexcept override;
  void hold_again(std::uint32_t place) noexcept override { ++holds_[place]; }
  void release(std::uint32_t place) noexcept override { --holds_[place]; }
  std::uint64_t skipped() const noexcept override { return skipped_; }
  bool has_job_ended() const override { return has_ended_; }
  std::uint32_t news() const noexcept override { return news_; }
  void wait_for_news(std::uint32_t, std::chrono::nanoseconds) const noexcept override {}

 private:
  std::vector<PublishedTensor> tensors_;
  std::array<std::unique_ptr<SimulatedMemory>, kVersionCountMax> places_{};
  std::array<std::uint32_t, kVersionCountMax> holds_{};
  std::optional<Held> newest_{};
  std::uint64_t skipped_ = 0;
  std::uint32_t news_ = 0;
  bool has_ended_ = false;
};

/// The rows that are sent under one name. Each block has one row.
class SimulatedExperience {
 public:
  SimulatedExperience(std::vector<PublishedTensor> fields, std::uint32_t capacity);

  const std::vector<PublishedTensor>& fields() const { return fields_; }
  std::uint32_t capacity() const { return capacity_; }
  std::optional<std::vector<std::uint32_t>> take(std::uint64_t rows);
  void give_back(std::span<const std::uint32_t> blocks);
  void send(std::span<const std::uint32_t> blocks, std::uint64_t version);
  std::byte* row(std::uint32_t block) { return memory_.data() + block * row_bytes_; }
  std::vector<TestRow> take_rows(std::size_t at_most);
  void end();
  bool has_ended() const { return has_ended_; }
  std::uint32_t news() const { return news_; }

 private:
  struct Arrived {
    std::uint32_t block = 0;
    std::uint64_t version = 0;
  };

  std::vector<PublishedTensor> fields_;
  std::uint32_t capacity_;
  std::size_t row_bytes_;
  SimulatedMemory memory_;
  std::set<std::uint32_t> free_{};
  std::deque<Arrived> arrived_{};
  std::uint32_t news_ = 0;
  bool has_ended_ = false;
};

/// The job, with all names. TestJob explains what its functions do.
class SimulatedJob {
 public:
  /// The id of the job, which is also the id of the simulated system.
  static const std::string& id();

  explicit SimulatedJob(ActorSimulation& simulation) : simulation_(&simulation) {}

  const Job* handle() const { return &handle_; }
  bool publish(std::string_view name, std::uint64_t version, const TestJob::Tensors& tensors);
  void begin_experience(std::string_view name, const std::vector<Field>& fields,
                        std::int64_t capacity);
  std::vector<TestRow> take_rows(std::string_view name, std::int64_t at_most);
  void end();
  bool has_ended() const { return has_ended_; }

  std::shared_ptr<SimulatedVersions> versions(const std::string& name) const;  ///< or null
  std::shared_ptr<SimulatedExperience> rows(const std::string& name) const;    ///< or null
  std::vector<std::string> published_names() const;
  /// Returns a number that changes when a name is added and when the job ends.
  std::uint32_t changes() const { return changes_; }

 private:
  void require_running(std::string_view function) const;

  ActorSimulation* simulation_;
  Job handle_{};
  std::map<std::string, std::shared_ptr<SimulatedVersions>, std::less<>> versions_{};
  std::map<std::string, std::shared_ptr<SimulatedExperience>, std::less<>> rows_{};
  std::uint32_t changes_ = 0;
  bool has_ended_ = false;
};

}  // namespace weft
