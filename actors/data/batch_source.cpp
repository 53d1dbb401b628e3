#include "actors/data/batch_source.hpp"

#include <chrono>
#include <utility>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

RowLayout rows_of(const WorkerRuntime& runtime, const BatchLayout& layout) {
  const Mesh& mesh = runtime.program_mesh();
  std::vector<FieldLayout> fields;
  for (std::size_t f = 0; f < layout.types.size(); ++f) {
    const TensorType& type = layout.types[f];
    FieldLayout field{.item = {type.dtype, Shape(std::span(type.shape).subspan(1))}};
    for (const int position : runtime.positions()) {
      field.shards.push_back(shard_box(type.shape, layout.shardings[f], mesh, position));
    }
    fields.push_back(std::move(field));
  }
  return RowLayout(std::move(fields));
}

std::vector<BatchRows> all_rows_of(const WorkerRuntime& runtime, const BatchShapes& shapes) {
  std::vector<BatchRows> rows;
  for (const BatchLayout& layout : shapes.layouts()) {
    rows.push_back({rows_of(runtime, layout), layout.rows()});
  }
  return rows;
}

/// Describes, for error messages, the item from which each row of a batch's field was read.
class BatchField : public RowOrigin {
 public:
  BatchField(DatasetPtr dataset, SamplerPtr sampler, std::uint64_t batch, std::size_t field)
      : dataset_(std::move(dataset)), sampler_(std::move(sampler)), batch_(batch), field_(field) {}

  std::string describe(std::int64_t row) const override {
    const Item item = sampler_->order_at(batch_)->item(batch_, row);
    const std::uint64_t batches = sampler_->steps_per_epoch();
    const std::string path = item.index == kNoItem ? "" : dataset_->item_path(item.index);
    return fmt::format("field '{}' of item {} of {}{}, which is row {} of batch {} of epoch {}",
                       dataset_->fields()[field_].name, item.index, dataset_->name(),
                       path.empty() ? "" : " (" + path + ")", row, batch_ % batches,
                       batch_ / batches);
  }

 private:
  const DatasetPtr dataset_;
  const SamplerPtr sampler_;
  const std::uint64_t batch_;
  const std::size_t field_;
};

}  // namespace

BatchSource::BatchSource(WorkerRuntime& runtime, JobLoaders& loaders, const Recorder& recorder,
                         DatasetPtr dataset, DeviceLoaderOptions options, BatchShapes shapes,
                         std::shared_ptr<LoaderProgress> progress, std::string place)
    : runtime_(&runtime),
      loaders_(&loaders),
      recorder_(recorder),
      dataset_(std::move(dataset)),
      text_(recorder_.events.intern(dataset_->name())),
      options_(std::move(options)),
      shapes_(std::move(shapes)),
      progress_(std::move(progress)),
      place_(std::move(place)),
      reader_(dataset_, options_.sampler, all_rows_of(runtime, shapes_),
              {.num_threads = options_.num_threads,
               .at_a_time = options_.loader_prefetch_size,
               .has_weight = options_.pad_last}) {}

WorkerRuntime& BatchSource::runtime() const {
  if (runtime_ == nullptr) {
    fail(Errc::invalid_argument,
         "a DeviceLoader of {} is used after its training loop has ended: make the loader "
         "inside the loop",
         dataset_->name());
  }
  return *runtime_;
}

JobLoaders& BatchSource::loaders() const {
  (void)runtime();
  return *loaders_;
}

BatchSource::Ready BatchSource::take(std::uint64_t batch, std::uint64_t end) {
  if (batch + begun_.size() != next_) {
    reader_.drop();
    begun_.clear();
    next_ = batch;
  }
  read_ahead(end);
  const auto begin = Clock::now();
  Ready ready;
  Begun begun = std::move(begun_.front());
  begun_.pop_front();
  if (begun.failure) std::rethrow_exception(begun.failure);
  BatchReader::Finished finished;
  if (reader_.is_ready()) {
    finished = reader_.finish();
  } else {
    const StateScope loading(recorder_, ActorState::loading, EventKind::load, {.text = text_});
    const InsideScope inside(recorder_.board);
    finished = reader_.finish([&](const SlowItem& item) {
      inside.enter(dataset_->name(), item.index, item.tid, item.since_ns);
    });
  }
  ready.num_items = finished.num_items;
  compare(batch, finished.first_hashes);
  const std::chrono::duration<double> waited = Clock::now() - begin;
  runtime().metrics().sample("LoaderWait", MetricUnit::seconds, waited.count());
  if (shapes_.has_buckets()) {
    runtime().metrics().sample("LoaderPadding", MetricUnit::share, begun.padding);
  } else if (finished.elements > 0) {
    runtime().metrics().sample(
        "LoaderPadding", MetricUnit::share,
        static_cast<double>(finished.padding) / static_cast<double>(finished.elements));
  }
  const std::size_t num_fields = dataset_->fields().size();
  for (std::size_t f = 0; f < begun.inputs.size(); ++f) {
    std::shared_ptr<const RowOrigin> origin;
    if (f < num_fields) {
      origin = std::make_shared<const BatchField>(dataset_, options_.sampler, batch, f);
    }
    runtime().deliver(begun.inputs[f], std::move(origin));
    ready.buffers.push_back(std::move(begun.inputs[f].buffer));
  }
  read_ahead(end);
  return ready;
}

/// Begins to read the batches before number `end`, as many as prefetching allows. make_input()
/// returns only memory that no run uses any more, so the reads don't overwrite a batch that a run
/// still needs.
void BatchSource::read_ahead(std::uint64_t end) {
  const auto ahead =
      static_cast<std::size_t>(options_.loader_prefetch_size + options_.device_prefetch_size);
  for (; begun_.size() < ahead && next_ < end; ++next_) {
    BatchShapes::Choice shape;
    try {
      shape = shapes_.choose(next_);
    } catch (...) {
      begun_.push_back({.failure = std::current_exception()});
      continue;
    }
    const BatchLayout& layout = shapes_.layouts()[shape.layout];
    std::vector<ChipInput> inputs;
    BatchMemory memory;
    for (std::size_t f = 0; f < layout.types.size(); ++f) {
      inputs.push_back(runtime().make_input(layout.types[f], layout.shardings[f]));
      memory.push_back(inputs.back().shards);
    }
    begun_.push_back({.inputs = std::move(inputs), .padding = shape.padding});
    reader_.begin(next_, shape.layout, std::move(memory), is_compared(next_));
  }
}

/// Returns whether the workers compare the first item of this batch. Batches are counted from the
/// first batch of this loop, so that the first batch after the loss of a worker is compared too.
bool BatchSource::is_compared(std::uint64_t batch) {
  if (!first_) first_ = batch;
  return batch >= *first_ && is_due(runtime().check_data(), batch - *first_ + 1);
}

/// Notes the hashes of the batch's first item, by field, so that the trainer compares the workers.
/// `hashes` is empty if the batch isn't compared.
void BatchSource::compare(std::uint64_t batch, const std::vector<std::uint64_t>& hashes) {
  if (hashes.empty()) return;
  const std::int64_t item = options_.sampler->order_at(batch)->item(batch, 0).index;
  for (std::size_t f = 0; f < hashes.size(); ++f) {
    const Field& field = dataset_->fields()[f];
    runtime().note_data(
        fmt::format("field '{}' {} of item {}, the first of batch {} of epoch {} of the "
                    "DeviceLoader at {}{}{},",
                    field.name, field.type.to_string(), item, batch % batches_per_epoch(),
                    batch / batches_per_epoch(), place_, DataHashes::kOfDataset, dataset_->name()),
        hashes[f]);
  }
}

void BatchSource::close() {
  reader_.drop();
  begun_.clear();
  runtime_ = nullptr;
}

}  // namespace weft
