#include <weft/device_loader.hpp>

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/ranges.h>

#include <weft/error.hpp>
#include <weft/train_context.hpp>

#include "actors/data/job_loaders.hpp"
#include "spmd/tensor/node.hpp"

namespace weft {
namespace {

constexpr std::uint64_t kNoEnd = std::numeric_limits<std::uint64_t>::max();

std::uint64_t per_step(const BatchSource& source) {
  return static_cast<std::uint64_t>(source.options().batches_per_execution);
}

}  // namespace

const Tensor& Batch::operator[](std::string_view field) const {
  const auto found = std::ranges::find(*fields_, field, &Field::name);
  if (found == fields_->end()) {
    std::vector<std::string> names;
    for (const Field& known : *fields_) names.push_back(known.name);
    fail(Errc::invalid_argument, "a batch has no field '{}'; it has '{}'", field,
         fmt::join(names, "', '"));
  }
  return tensors_[static_cast<std::size_t>(found - fields_->begin())];
}

const Tensor& Batch::operator[](std::size_t field) const {
  if (field >= tensors_.size()) {
    fail(Errc::invalid_argument, "a batch has no field {}; it has {} fields", field,
         tensors_.size());
  }
  return tensors_[field];
}

DeviceLoader::DeviceLoader(DatasetPtr dataset, DeviceLoaderOptions options,
                           std::source_location where)
    : where_(where),
      source_(get_context().loaders().open(std::move(dataset), std::move(options), where)),
      fields_(std::make_shared<const std::vector<Field>>(source_->dataset()->fields())) {}

std::uint64_t DeviceLoader::batches_per_epoch() const {
  return source_->options().sampler->steps_per_epoch();
}

std::uint64_t DeviceLoader::steps_per_epoch() const {
  const std::uint64_t batches = batches_per_epoch();
  if (batches % per_step(*source_) != 0) {
    fail(Errc::invalid_argument,
         "DeviceLoader: batches_per_execution = {} doesn't divide the {} batches of an epoch of {} "
         "(at {}): take another batch_size, or leave items out by subset()",
         per_step(*source_), batches, source_->dataset()->name(), file_line(where_));
  }
  return batches / per_step(*source_);
}

std::uint64_t DeviceLoader::epoch() const { return source_->runtime().step() / steps_per_epoch(); }

Batch DeviceLoader::take(std::uint64_t batch, std::uint64_t end) {
  BatchSource::Ready ready = source_->take(batch, end);
  Batch taken;
  taken.fields_ = fields_;
  taken.num_items_ = ready.num_items;
  for (BufferPtr& buffer : ready.buffers) {
    taken.tensors_.emplace_back(data_node(std::move(buffer), where_));
  }
  if (taken.tensors_.size() > fields_->size()) {
    taken.weight_ = std::move(taken.tensors_.back());
    taken.tensors_.pop_back();
  }
  return taken;
}

DeviceLoader::Iterator DeviceLoader::begin(std::source_location where) {
  const std::uint64_t first = source_->runtime().step() * per_step(*source_);
  return Iterator(*this, first, (epoch() + 1) * batches_per_epoch(), true, where);
}

DeviceLoader::Range DeviceLoader::all(std::uint64_t epoch) { return Range(*this, epoch); }

DeviceLoader::Iterator DeviceLoader::Range::begin(std::source_location where) const {
  const std::uint64_t batches = loader_->batches_per_epoch();
  return Iterator(*loader_, epoch_ * batches, (epoch_ + 1) * batches, false, where);
}

DeviceLoader::Iterator::Iterator(DeviceLoader& loader, std::uint64_t first, std::uint64_t end,
                                 bool ends_steps, std::source_location where)
    : loader_(&loader), next_(first), end_(end), ends_steps_(ends_steps), where_(where) {
  loader.source_->runtime().require_loop_thread("DeviceLoader", where);
  advance();
}

DeviceLoader::Iterator& DeviceLoader::Iterator::operator++() {
  batch_ = {};  // so that its tensors don't live when the step ends
  if (ends_steps_) end_step();
  advance();
  return *this;
}

void DeviceLoader::Iterator::advance() {
  if (next_ == end_) {
    loader_ = nullptr;
    return;
  }
  if (batch_of_step_ == 0) step_ = loader_->source_->runtime().step();
  batch_ = loader_->take(next_++, ends_steps_ ? kNoEnd : end_);
}

void DeviceLoader::Iterator::end_step() {
  const BatchSource& source = *loader_->source_;
  const std::uint64_t ended = source.runtime().step() - step_;
  const std::uint64_t batches = per_step(source);
  const bool is_last = ++batch_of_step_ == batches;
  if (ended > (is_last ? 1U : 0U)) {
    fail(Errc::invalid_argument,
         "{} steps ended in {} of the {} batches of step {}; which batch comes follows from the "
         "step, so that one step must end for {}: call sync(), or a compiled function, once, or "
         "not at all, as what follows the body ends the step (at {})",
         ended, batch_of_step_, batches, step_,
         batches == 1 ? "each batch" : fmt::format("every {} batches", batches), file_line(where_));
  }
  if (!is_last) return;
  batch_of_step_ = 0;
  if (ended == 0) sync(where_);
}

}  // namespace weft
