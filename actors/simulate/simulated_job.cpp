#include "actors/simulate/simulated_job.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>

#include "actors/simulate/actor_simulation.hpp"
#include "actors/simulate/simulated_process.hpp"

namespace weft {
namespace {

std::size_t bytes_of_all(const std::vector<PublishedTensor>& tensors) {
  const PublishedTensor& last = tensors.back();
  const std::size_t end = last.offset + static_cast<std::size_t>(last.type.bytes());
  return (end + kPublishedAlignment - 1) / kPublishedAlignment * kPublishedAlignment;
}

std::string text_of(const std::vector<PublishedTensor>& tensors) {
  std::vector<std::string> all;
  for (const PublishedTensor& each : tensors) {
    all.push_back(fmt::format("\"{}\" {}", each.name, each.type.to_string()));
  }
  return fmt::format("{}", fmt::join(all, ", "));
}

}  // namespace

// --- Versions ---

SimulatedVersions::SimulatedVersions(std::vector<PublishedTensor> tensors)
    : tensors_(std::move(tensors)) {}

bool SimulatedVersions::publish(std::uint64_t version, const TestJob::Tensors& tensors) {
  std::uint32_t place = 0;
  while (place < kVersionCountMax && (holds_[place] > 0 || (newest_ && newest_->place == place))) {
    ++place;
  }
  if (place == kVersionCountMax) {
    ++skipped_;
    return false;
  }
  auto& memory = places_[place];
  if (memory == nullptr) memory = std::make_unique<SimulatedMemory>(bytes_of_all(tensors_));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto bytes = static_cast<std::size_t>(tensors_[i].type.bytes());
    if (bytes == 0) continue;
    std::memcpy(memory->data() + tensors_[i].offset, tensors[i].second.elements.data(), bytes);
  }
  newest_ = Held{.version = version, .place = place};
  ++news_;
  return true;
}

void SimulatedVersions::end() {
  has_ended_ = true;
  ++news_;
}

std::optional<std::uint64_t> SimulatedVersions::newest() const noexcept {
  if (!newest_) return std::nullopt;
  return newest_->version;
}

std::optional<VersionSource::Held> SimulatedVersions::hold_newest() noexcept {
  if (newest_) ++holds_[newest_->place];
  return newest_;
}

// --- Rows ---

SimulatedExperience::SimulatedExperience(std::vector<PublishedTensor> fields,
                                         std::uint32_t capacity)
    : fields_(std::move(fields)),
      capacity_(capacity),
      row_bytes_(bytes_of_all(fields_)),
      memory_(row_bytes_ * capacity) {
  for (std::uint32_t block = 0; block < capacity; ++block) free_.insert(block);
}

std::optional<std::vector<std::uint32_t>> SimulatedExperience::take(std::uint64_t rows) {
  if (rows > free_.size()) return std::nullopt;
  const auto end = std::next(free_.begin(), static_cast<std::ptrdiff_t>(rows));
  std::vector<std::uint32_t> blocks(free_.begin(), end);
  free_.erase(free_.begin(), end);
  return blocks;
}

void SimulatedExperience::give_back(std::span<const std::uint32_t> blocks) {
  free_.insert(blocks.begin(), blocks.end());
  ++news_;
}

void SimulatedExperience::send(std::span<const std::uint32_t> blocks, std::uint64_t version) {
  for (const std::uint32_t block : blocks) arrived_.push_back({block, version});
}

std::vector<TestRow> SimulatedExperience::take_rows(std::size_t at_most) {
  std::vector<TestRow> taken;
  while (!arrived_.empty() && taken.size() < at_most) {
    const Arrived arrived = arrived_.front();
    arrived_.pop_front();
    TestRow& its = taken.emplace_back();
    its.version = arrived.version;
    for (const PublishedTensor& field : fields_) {
      auto memory =
          std::make_shared<SimulatedMemory>(static_cast<std::size_t>(field.type.bytes()) + 1);
      std::memcpy(memory->data(), row(arrived.block) + field.offset,
                  static_cast<std::size_t>(field.type.bytes()));
      const ConstElementSpan elements(field.type.dtype, memory->data(), field.type.num_elements());
      its.fields.emplace(field.name, HostTensor(elements, field.type.shape, memory));
    }
    give_back({&arrived.block, 1});
  }
  return taken;
}

void SimulatedExperience::end() {
  has_ended_ = true;
  ++news_;
}

// --- The job ---

const std::string& SimulatedJob::id() {
  static const std::string zeros(32, '0');
  return zeros;
}

void SimulatedJob::require_running(std::string_view function) const {
  simulation_->require_turn();
  if (has_ended_) fail(Errc::invalid_argument, "TestJob: {}() after the end of the job", function);
}

bool SimulatedJob::publish(std::string_view name, std::uint64_t version,
                           const TestJob::Tensors& tensors) {
  require_running("publish");
  require_published_name(name, "TestJob::publish");
  if (tensors.empty()) {
    fail(Errc::invalid_argument, "TestJob: publish(\"{}\"): expected 1 or more tensors", name);
  }
  std::vector<PublishedTensor> types;
  for (const auto& [its_name, tensor] : tensors) {
    types.push_back({.name = its_name, .type = {tensor.elements.dtype(), tensor.shape}});
  }
  types = lay_out(std::move(types));
  auto found = versions_.find(name);
  if (found == versions_.end()) {
    found = versions_.emplace(name, std::make_shared<SimulatedVersions>(types)).first;
    ++changes_;
  }
  SimulatedVersions& known = *found->second;
  if (known.tensors() != types) {
    fail(Errc::invalid_argument,
         "TestJob: publish(\"{}\", version {}): it has {}, but earlier versions have {}", name,
         version, text_of(types), text_of(known.tensors()));
  }
  if (known.newest() && *known.newest() >= version) {
    fail(Errc::invalid_argument,
         "TestJob: publish(\"{}\", version {}): expected a later version than {}", name, version,
         *known.newest());
  }
  const bool is_published = known.publish(version, tensors);
  simulation_->log(fmt::format("version {} of \"{}\" is {}", version, name,
                               is_published ? "published" : "skipped"));
  return is_published;
}

void SimulatedJob::begin_experience(std::string_view name, const std::vector<Field>& fields,
                                    std::int64_t capacity) {
  constexpr std::int64_t kCapacityMax = std::int64_t{1} << 24;
  require_running("begin_experience");
  require_published_name(name, "TestJob::begin_experience");
  if (fields.empty() || capacity < 1 || capacity > kCapacityMax || rows_.contains(name)) {
    fail(Errc::invalid_argument,
         "TestJob: begin_experience(\"{}\", {} fields, capacity {}): expected a name that isn't in "
         "use, 1 or more fields, and a capacity of 1 to {} rows",
         name, fields.size(), capacity, kCapacityMax);
  }
  std::vector<PublishedTensor> types;
  for (const Field& field : fields) types.push_back({.name = field.name, .type = field.type});
  rows_.emplace(name, std::make_shared<SimulatedExperience>(lay_out(std::move(types)),
                                                            static_cast<std::uint32_t>(capacity)));
  ++changes_;
}

std::vector<TestRow> SimulatedJob::take_rows(std::string_view name, std::int64_t at_most) {
  simulation_->require_turn();
  const auto found = rows_.find(name);
  if (found == rows_.end()) {
    std::vector<std::string> names;
    for (const auto& [its_name, rows] : rows_) names.push_back(its_name);
    fail(Errc::not_found, "TestJob: take_rows(\"{}\"): begin_experience() was called for: {}", name,
         names.empty() ? "no name" : fmt::format("{}", fmt::join(names, ", ")));
  }
  std::vector<TestRow> taken =
      found->second->take_rows(static_cast<std::size_t>(std::max<std::int64_t>(at_most, 0)));
  simulation_->log(fmt::format("{} rows of \"{}\" are taken", taken.size(), name));
  return taken;
}

void SimulatedJob::end() {
  if (has_ended_) return;
  has_ended_ = true;
  ++changes_;
  simulation_->log("the job ends");
  for (const auto& [name, each] : versions_) each->end();
  for (const auto& [name, each] : rows_) each->end();
  simulation_->keeper().on_job_ended();
}

std::shared_ptr<SimulatedVersions> SimulatedJob::versions(const std::string& name) const {
  const auto found = versions_.find(name);
  return found == versions_.end() ? nullptr : found->second;
}

std::shared_ptr<SimulatedExperience> SimulatedJob::rows(const std::string& name) const {
  const auto found = rows_.find(name);
  return found == rows_.end() ? nullptr : found->second;
}

std::vector<std::string> SimulatedJob::published_names() const {
  std::vector<std::string> names;
  for (const auto& [name, versions] : versions_) names.push_back(name);
  return names;
}

}  // namespace weft
