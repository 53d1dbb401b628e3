#include <weft/data/device_loader.hpp>

#include <algorithm>
#include <utility>

#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>
#include <weft/train/train_context.hpp>

#include "actors/data/loader_pass.hpp"
#include "spmd/tensor/node.hpp"

namespace weft {

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

std::uint64_t Batch::index() const {
  ++*questions_;
  return index_;
}

namespace {

std::uint64_t batches_per_step(const BatchSource& source) {
  return static_cast<std::uint64_t>(source.options().batches_per_execution);
}

}  // namespace

DeviceLoader::DeviceLoader(DatasetPtr dataset, DeviceLoaderOptions options,
                           std::source_location where)
    : where_(where),
      source_(get_context().loaders().open(std::move(dataset), std::move(options), where)),
      fields_(std::make_shared<const std::vector<Field>>(source_->dataset()->fields())) {}

std::uint64_t DeviceLoader::batches_per_epoch() const {
  source_->progress().ask_length();
  return source_->batches_per_epoch();
}

std::uint64_t DeviceLoader::steps_per_epoch() const {
  source_->progress().ask_length();
  return whole_steps();
}

std::uint64_t DeviceLoader::whole_steps() const {
  const std::uint64_t batches = source_->batches_per_epoch();
  if (batches % batches_per_step(*source_) != 0) {
    fail(Errc::invalid_argument,
         "DeviceLoader: batches_per_execution = {} doesn't divide the {} batches of an epoch of {} "
         "(at {}): take another batch_size, or leave items out by subset()",
         batches_per_step(*source_), batches, source_->dataset()->name(), file_line(where_));
  }
  return batches / batches_per_step(*source_);
}

std::uint64_t DeviceLoader::epoch() const {
  (void)whole_steps();
  ++*source_->loaders().questions();
  source_->progress().ask();
  return source_->progress().epoch();
}

Batch DeviceLoader::fetch(std::uint64_t batch, std::uint64_t end, std::uint64_t index) {
  BatchSource::Ready ready = source_->take(batch, end);
  Batch taken;
  taken.fields_ = fields_;
  taken.num_items_ = ready.num_items;
  taken.index_ = index;
  taken.questions_ = source_->loaders().questions();
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
  (void)whole_steps();
  return first(source_->batches_per_epoch()).begin(where);
}

DeviceLoader::Range DeviceLoader::first(std::uint64_t count) {
  return {*this, 0, std::min(count, source_->batches_per_epoch()), false};
}

DeviceLoader::Range DeviceLoader::all(std::uint64_t epoch) {
  return {*this, epoch, source_->batches_per_epoch(), true};
}

DeviceLoader::Iterator DeviceLoader::Range::begin(std::source_location where) const {
  const BatchSource& source = *loader_.source_;
  source.runtime().require_loop_thread("DeviceLoader", where);
  const PassKind kind = is_evaluation_                     ? PassKind::evaluation
                        : source.loaders().num_in_body > 0 ? PassKind::nested
                                                           : PassKind::training;
  return Iterator(std::make_unique<LoaderPass>(loader_, kind, epoch_, count_, where));
}

DeviceLoader::Iterator::Iterator(std::unique_ptr<LoaderPass> pass) : pass_(std::move(pass)) {}

DeviceLoader::Iterator::Iterator(Iterator&&) noexcept = default;

DeviceLoader::Iterator& DeviceLoader::Iterator::operator=(Iterator&& other) noexcept(false) {
  const auto before = std::exchange(pass_, std::move(other.pass_));
  if (before != nullptr && before != pass_) before->leave();
  return *this;
}

DeviceLoader::Iterator::~Iterator() noexcept(false) {
  if (pass_ != nullptr) pass_->leave();
}

const Batch& DeviceLoader::Iterator::operator*() const { return pass_->batch(); }

DeviceLoader::Iterator& DeviceLoader::Iterator::operator++() {
  pass_->advance();
  return *this;
}

bool DeviceLoader::Iterator::operator==(End) const { return pass_->is_done(); }

}  // namespace weft
