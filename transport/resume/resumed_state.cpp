#include "transport/resume/resumed_state.hpp"

#include <algorithm>
#include <vector>

#include <fmt/ranges.h>
#include <weft/tensor/error.hpp>

#include "spmd/base/nearest.hpp"
#include "spmd/tensor/node.hpp"

namespace weft {
namespace {

/// The most names in a message. More names would hide the important ones.
constexpr std::size_t kNamesMax = 20;

std::string joined(std::vector<std::string> texts) {
  const std::size_t count = texts.size();
  texts.resize(std::min(count, kNamesMax));
  return fmt::format("{}{}", fmt::join(texts, "; "),
                     count > kNamesMax ? fmt::format("; and {} more", count - kNamesMax) : "");
}

const FileTensor* find(const StateFile& file, const std::string& name) {
  const auto found = std::ranges::find(file.tensors(), name, &FileTensor::name);
  return found == file.tensors().end() ? nullptr : &*found;
}

}  // namespace

bool ResumedState::has(const std::string& name) const { return find(*file_, name) != nullptr; }

Restored ResumedState::take(const std::string& name, const TensorType& type, const Mesh& mesh) {
  const FileTensor* tensor = find(*file_, name);
  const bool fits = tensor != nullptr && tensor->dtype == static_cast<FileDType>(type.dtype) &&
                    tensor->shape == type.shape;
  if (!fits) {
    const bool may_make = lets_make_ && (tensor == nullptr || tensor->kind == StateKind::opt_state);
    const bool may_lack = tensor == nullptr && file_->checkpoint()->partial;
    if (may_make) made_.insert(fmt::format("'{}' {}", name, type.to_string()));
    if (!may_make && !may_lack) refused_[name] = type;
    return {};
  }
  taken_.insert(name);
  return restored(*tensor, type.dtype, mesh);
}

Restored ResumedState::restored(const FileTensor& tensor, DType dtype, const Mesh& mesh) const {
  const bool is_same_mesh = file_->mesh() && *file_->mesh() == mesh;
  const auto index = static_cast<std::size_t>(&tensor - file_->tensors().data());
  return {.value = file_->source(index, dtype),
          .laid_out = is_same_mesh ? tensor.sharding : std::nullopt};
}

std::vector<ResumedState::Taken> ResumedState::taken(const Mesh& mesh) const {
  std::vector<Taken> all;
  for (const FileTensor& tensor : file_->tensors()) {
    if (!taken_.contains(tensor.name)) continue;
    const auto dtype = static_cast<DType>(tensor.dtype);
    all.push_back({tensor, {dtype, tensor.shape}, restored(tensor, dtype, mesh)});
  }
  return all;
}

void ResumedState::require_taken(std::span<const ProgramInput> inputs,
                                 std::span<const Binding> values) const {
  if (refused_.empty()) return;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool is_own = is_state(inputs[i].kind) && is_first_value(values[i]);
    if (!is_own || !refused_.contains(inputs[i].name)) continue;
    std::vector<std::string> faults;
    for (const auto& [name, type] : refused_) faults.push_back(why_not(name));
    fail(Errc::invalid_argument,
         "{}, from which the loop continues: {}. Save all of the loop's state, state_dict(net, "
         "optimizer); or set run.resume_partial, so that the loop makes the missing state "
         "itself; or begin at step 0 (run.resume = \"never\") and load() the tensors that the "
         "checkpoint has",
         file_->path(), joined(std::move(faults)));
  }
}

std::string ResumedState::why_not(const std::string& name) const {
  const std::string type = refused_.at(name).to_string();
  if (const FileTensor* tensor = find(*file_, name)) {
    return fmt::format("'{}' is {}, but in the checkpoint it is {}", name, type, tensor->label());
  }
  std::vector<std::string> rest;
  for (const FileTensor& tensor : file_->tensors()) {
    if (!taken_.contains(tensor.name)) rest.push_back(tensor.name);
  }
  const std::vector<std::string> near = nearest_names(name, rest);
  return fmt::format("it has no '{}' {}{}", name, type,
                     near.empty() ? "" : fmt::format(", but '{}'", fmt::join(near, "', '")));
}

std::string ResumedState::made() const {
  return made_.empty() ? "" : joined({made_.begin(), made_.end()});
}

std::string ResumedState::untaken() const {
  std::vector<std::string> names;
  for (const FileTensor& tensor : file_->tensors()) {
    if (!taken_.contains(tensor.name)) names.push_back(fmt::format("'{}'", tensor.name));
  }
  return names.empty() ? "" : joined(std::move(names));
}

}  // namespace weft
