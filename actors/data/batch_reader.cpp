#include "actors/data/batch_reader.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include <weft/data/packing.hpp>
#include <weft/tensor/error.hpp>

#include "actors/runtime/data_hashes.hpp"
#include "data/items/read_wanted.hpp"
#include "transport/blackbox/box_clock.hpp"

namespace weft {
namespace {

constexpr std::chrono::seconds kBetweenLooks{1};

/// Returns how many rows a thread takes at a time: few enough that every thread gets rows, and that
/// all threads stop soon after a drop().
std::size_t rows_at_once(std::size_t rows, int num_threads) {
  const auto threads = static_cast<std::size_t>(num_threads);
  return std::clamp<std::size_t>((rows + 2 * threads - 1) / (2 * threads), 1, 64);
}

std::vector<std::uint64_t> hashes_of(ItemMemory fields) {
  std::vector<std::uint64_t> hashes;
  for (const std::span<std::byte> field : fields) hashes.push_back(sampled_hash(field));
  return hashes;
}

}  // namespace

BatchReader::BatchReader(DatasetPtr dataset, SamplerPtr sampler, std::vector<BatchRows> shapes,
                         BatchReaderOptions options)
    : dataset_(std::move(dataset)),
      sampler_(std::move(sampler)),
      shapes_(std::move(shapes)),
      options_(options),
      readings_(static_cast<std::size_t>(options_.num_threads)) {
  const std::vector<Field>& fields = dataset_->fields();
  const auto ids = std::ranges::find(fields, kSegmentIdsField, &Field::name);
  if (ids != fields.end() && ids->type.dtype == DType::i32) {
    segment_ids_ = static_cast<std::size_t>(ids - fields.begin());
  }
  for (Reading& reading : readings_) {
    threads_.emplace_back([this, &reading](const std::stop_token& stop) { work(stop, reading); });
  }
}

BatchReader::~BatchReader() { drop(); }

void BatchReader::begin(std::uint64_t batch, std::size_t shape, BatchMemory memory,
                        bool is_compared) {
  auto filling = std::make_shared<Filling>();
  filling->batch = batch;
  filling->shape = &shapes_[shape];
  filling->memory = std::move(memory);
  filling->is_compared = is_compared;
  {
    const std::lock_guard lock(mutex_);
    fillings_.push_back(std::move(filling));
  }
  has_work_.notify_all();
}

bool BatchReader::is_filled(const Filling& filling) const {
  return filling.claimed == filling.shape->layout.rows().size() && filling.working == 0;
}

bool BatchReader::is_ready() {
  const std::lock_guard lock(mutex_);
  return is_filled(*fillings_.front());
}

std::optional<SlowItem> BatchReader::look(std::vector<Seen>& seen) const {
  const std::int64_t now = clock_ns(CLOCK_BOOTTIME);
  std::optional<SlowItem> slowest;
  seen.resize(readings_.size());
  for (std::size_t i = 0; i < readings_.size(); ++i) {
    const Reading& reading = readings_[i];
    const std::uint64_t begun = reading.begun.load();
    const std::int64_t index = reading.index.load();
    if (seen[i].since_ns == 0 || std::exchange(seen[i].begun, begun) != begun) {
      seen[i] = {.begun = begun, .since_ns = now};
    } else if (index >= 0 && (!slowest || seen[i].since_ns < slowest->since_ns)) {
      slowest = {.index = index, .tid = reading.tid.load(), .since_ns = seen[i].since_ns};
    }
  }
  return slowest;
}

BatchReader::Finished BatchReader::finish(const std::function<void(const SlowItem&)>& on_slow) {
  std::unique_lock lock(mutex_);
  const std::shared_ptr<Filling> filling = fillings_.front();
  std::vector<Seen> seen;
  (void)look(seen);
  while (!filled_.wait_for(lock, kBetweenLooks, [&] { return is_filled(*filling); })) {
    const std::optional<SlowItem> slow = look(seen);
    if (slow && on_slow) on_slow(*slow);
  }
  fillings_.pop_front();
  lock.unlock();
  if (filling->failure) std::rethrow_exception(filling->failure);
  return filling->counts;
}

void BatchReader::drop() {
  std::unique_lock lock(mutex_);
  is_dropping_ = true;
  for (const auto& filling : fillings_) filling->claimed = filling->shape->layout.rows().size();
  filled_.wait(lock, [&] {
    return std::ranges::all_of(fillings_, [&](const auto& filling) { return is_filled(*filling); });
  });
  fillings_.clear();
  is_dropping_ = false;
}

/// Takes rows for the calling thread from the oldest batch whose rows aren't all taken. Returns an
/// empty claim if there is no such batch. The caller must hold the mutex.
BatchReader::Claim BatchReader::claim() {
  int unfilled = 0;
  for (const auto& filling : fillings_) {
    if (is_filled(*filling)) continue;
    if (++unfilled > options_.at_a_time) break;
    const std::size_t rows = filling->shape->layout.rows().size();
    const std::size_t begin = filling->claimed;
    const std::size_t end = std::min(begin + rows_at_once(rows, options_.num_threads), rows);
    if (begin == end) continue;
    filling->claimed = end;
    ++filling->working;
    return {filling, begin, end};
  }
  return {};
}

void BatchReader::work(const std::stop_token& stop, Reading& reading) {
  const ReadWanted wanted(is_dropping_);
  reading.tid = ::gettid();
  ItemBuffer scratch(dataset_->fields());
  std::unique_lock lock(mutex_);
  for (;;) {
    Claim claimed;
    const auto has_claimed = [&] { return (claimed = claim()).filling != nullptr; };
    if (!has_work_.wait(lock, stop, has_claimed)) return;
    lock.unlock();
    fill(claimed, scratch, reading);
    lock.lock();
    --claimed.filling->working;
    if (!is_filled(*claimed.filling)) continue;
    filled_.notify_all();
    has_work_.notify_all();  // now the threads may work on the next batch
  }
}

void BatchReader::fill(const Claim& claim, ItemBuffer& scratch, Reading& reading) {
  Filling& filling = *claim.filling;
  std::int64_t row = 0;
  Finished counts;
  try {
    const SampleOrderPtr order = order_of(filling.batch);
    if (claim.begin == 0) counts.num_items = count_items(filling);
    if (claim.begin == 0 && filling.is_compared) {
      hash_first(filling, *order, scratch, reading, counts);
    }
    for (std::size_t i = claim.begin; i < claim.end; ++i) {
      row = filling.shape->layout.rows()[i];
      fill_row(filling, *order, row, scratch, reading, counts);
    }
    const std::lock_guard lock(mutex_);
    filling.counts.num_items += counts.num_items;
    filling.counts.elements += counts.elements;
    filling.counts.padding += counts.padding;
    if (claim.begin == 0) filling.counts.first_hashes = std::move(counts.first_hashes);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (filling.failure && filling.failed_row <= row) return;
    filling.failed_row = row;
    filling.failure = std::current_exception();
  }
}

void BatchReader::read_item(const Item& item, ItemMemory places, Reading& reading) {
  reading.index.store(item.index, std::memory_order_relaxed);
  reading.begun.fetch_add(1, std::memory_order_release);
  dataset_->read(item, places);
  reading.index.store(-1, std::memory_order_relaxed);
}

/// If this worker's chips don't hold the first row of the batch, reads and hashes that row. This
/// happens before the worker's own rows are read, so that a stream is read in order.
void BatchReader::hash_first(const Filling& filling, const SampleOrder& order, ItemBuffer& scratch,
                             Reading& reading, Finished& counts) {
  const Item first = order.item(filling.batch, 0);
  if (filling.shape->layout.rows().front() == 0 || first.index == kNoItem) return;
  try {
    read_item(first, scratch.memory(), reading);
    counts.first_hashes = hashes_of(scratch.memory());
  } catch (...) {  // ignored: a worker whose chips hold this row throws the error
    reading.index.store(-1, std::memory_order_relaxed);
  }
}

void BatchReader::fill_row(Filling& filling, const SampleOrder& order, std::int64_t row,
                           ItemBuffer& scratch, Reading& reading, Finished& counts) {
  const RowLayout& layout = filling.shape->layout;
  const std::size_t num_fields = dataset_->fields().size();
  const Item item = order.item(filling.batch, row);
  const bool is_item = item.index != kNoItem;
  if (options_.has_weight) {
    const float weight = is_item ? 1.0F : 0.0F;
    layout.spread(num_fields, row, reinterpret_cast<const std::byte*>(&weight), filling.memory);
  } else if (!is_item) {
    fail(Errc::invalid_argument,
         "{}: batch {} has no item for row {}: set pad_last, which gives such rows a weight of "
         "0 for the losses",
         dataset_->name(), filling.batch, row);
  }
  if (!is_item) {
    for (std::size_t f = 0; f < num_fields; ++f) layout.clear(f, row, filling.memory);
    return;
  }
  std::vector<std::span<std::byte>> places(scratch.memory().begin(), scratch.memory().end());
  for (std::size_t f = 0; f < num_fields; ++f) {
    std::byte* const whole = layout.whole_item(f, row, filling.memory);
    // An item that is longer than its row is read into `scratch` first, and then cut.
    if (whole != nullptr && layout.item_bytes(f) == places[f].size()) {
      places[f] = {whole, places[f].size()};
    }
  }
  read_item(item, places, reading);
  if (filling.is_compared && row == 0) counts.first_hashes = hashes_of(places);
  if (segment_ids_) {
    const auto ids = ItemView(dataset_->fields(), places).get<std::int32_t>(*segment_ids_);
    counts.elements += std::ssize(ids);
    counts.padding += std::ranges::count(ids, 0);
  }
  for (std::size_t f = 0; f < num_fields; ++f) {
    layout.spread(f, row, places[f].data(), filling.memory);
  }
}

SampleOrderPtr BatchReader::order_of(std::uint64_t batch) {
  const std::lock_guard lock(order_mutex_);
  if (order_ == nullptr || !order_->has(batch)) order_ = sampler_->order_at(batch);
  return order_;
}

std::int64_t BatchReader::count_items(const Filling& filling) {
  const std::int64_t rows = filling.shape->rows;
  if (!options_.has_weight) return rows;
  const SampleOrderPtr order = order_of(filling.batch);
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    count += order->item(filling.batch, row).index != kNoItem ? 1 : 0;
  }
  return count;
}

}  // namespace weft
