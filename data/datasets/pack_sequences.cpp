#include <weft/data/packing.hpp>

#include <unordered_map>
#include <utility>

#include <weft/tensor/error.hpp>

#include "data/datasets/packed_rows.hpp"
#include "data/items/fields.hpp"
#include "data/items/item_reading.hpp"
#include "data/items/permutation.hpp"
#include "data/items/words.hpp"
#include "data/remote/scan_progress.hpp"

namespace weft {
namespace {

/// Returns a name that includes the options on which the rows depend. When a training resumes, the
/// loader compares names, and so notices whether the rows have changed.
std::string name_of(const std::string& source, const PackOptions& options) {
  return fmt::format(
      "pack_sequences({}, {}{}{})", source, options.length,
      options.window == PackOptions{}.window ? "" : fmt::format(", window {}", options.window),
      options.shuffle_seed ? fmt::format(", shuffle_seed {}", *options.shuffle_seed) : "");
}

class PackedDataset : public Dataset {
 public:
  PackedDataset(DatasetPtr source, const PackOptions& options)
      : source_(std::move(source)),
        name_(name_of(source_->name(), options)),
        packed_(name_, source_->fields(), options) {
    if (!options.lengths.empty() && std::ssize(options.lengths) != source_->size()) {
      fail(Errc::invalid_argument, "{}: lengths has {} numbers; the source has {} items", name_,
           options.lengths.size(), source_->size());
    }
    make_rows(options);
    if (size() > 0) return;
    fail(Errc::invalid_argument, "{}: none of {} items has a token", name_, source_->size());
  }

  std::string name() const override { return name_; }
  std::int64_t size() const override { return std::ssize(row_begins_) - 1; }
  const std::vector<Field>& fields() const override { return packed_.fields(); }

 private:
  void make_rows(const PackOptions& options) {
    RowPacker packer(options.length, options.window);
    const auto keep = [&](const std::optional<PackedRow>& row) {
      if (!row) return false;
      sequences_.insert(sequences_.end(), row->begin(), row->end());
      row_begins_.push_back(sequences_.size());
      return true;
    };
    const std::int64_t count = source_->size();
    std::optional<Shuffle> shuffle;
    if (options.shuffle_seed && count > 0) {
      shuffle.emplace(count, data_key(*options.shuffle_seed, DataStream::pack, 0));
    }
    const std::vector<std::int64_t> lengths = lengths_of(options);
    for (std::int64_t place = 0; place < count; ++place) {
      const std::int64_t index = shuffle ? (*shuffle)[place] : place;
      const std::int64_t length = lengths[static_cast<std::size_t>(index)];
      if (length > 0) keep(packer.add({index, length}));
    }
    while (keep(packer.close())) {
    }
  }

  std::vector<std::int64_t> lengths_of(const PackOptions& options) const {
    std::vector<std::int64_t> lengths;
    const ItemBuffer item(source_->fields());
    ScanProgress progress(name_, "items", source_->size());
    for (std::int64_t index = 0; index < source_->size(); ++index) {
      const auto where = [&] { return fmt::format("item {} of {}", index, source_->name()); };
      const auto length = [&] {
        if (!options.lengths.empty()) {
          return packed_.packed_length(options.lengths[static_cast<std::size_t>(index)]);
        }
        source_->read({.index = index}, item.memory());
        return packed_.run_of(item.memory()).length;
      };
      lengths.push_back(with_place(length, where));
      progress.advance(1);
    }
    return lengths;
  }

  void read_item(const Item& item, ItemMemory out) const override {
    const auto row = static_cast<std::size_t>(item.index);
    const ItemBuffer read(source_->fields());
    PackedRowWriter writer(packed_, out);
    for (std::size_t i = row_begins_[row]; i < row_begins_[row + 1]; ++i) {
      const auto& [index, length] = sequences_[i];
      source_->read({index, item.epoch, item.seed}, read.memory());
      const TokenRun run = packed_.run_of(read.memory());
      if (run.length != length) {
        fail(Errc::corrupt,
             "item {} of {} has {} tokens, but {} were expected when the rows were made: lengths "
             "must be correct, and the same in each epoch",
             index, source_->name(), run.length, length);
      }
      writer.append(packed_.run_memory(read.memory(), run), run.length);
    }
    writer.finish();
  }

  const DatasetPtr source_;
  const std::string name_;
  const PackedFields packed_;
  std::vector<PackedSequence> sequences_;  // of all rows; `number` is an item's index
  std::vector<std::size_t> row_begins_{0};
};

class PackedStream : public Stream {
 public:
  PackedStream(StreamPtr source, const PackOptions& options)
      : source_(std::move(source)),
        name_(name_of(source_->name(), options)),
        packed_(name_, source_->fields(), options),
        options_(options),
        packer_(options.length, options.window) {
    if (!options.lengths.empty() || options.shuffle_seed) {
      fail(Errc::invalid_argument,
           "{}: {} works only for a dataset; a stream is packed in its own order, by the actual "
           "lengths of its items (shuffle_buffer() shuffles a stream)",
           name_, options.shuffle_seed ? "shuffle_seed" : "lengths");
    }
    rewind_items();
  }

  std::string name() const override { return name_; }
  const std::vector<Field>& fields() const override { return packed_.fields(); }

 private:
  bool next_item(ItemMemory out) override {
    const std::optional<PackedRow> row = next_row();
    if (!row) return false;
    PackedRowWriter writer(packed_, out);
    for (const PackedSequence& sequence : *row) {
      const auto held = held_.extract(sequence.number);
      writer.append(held.mapped().memory(), sequence.length);
    }
    writer.finish();
    return true;
  }
  bool skip_item() override {
    const std::optional<PackedRow> row = next_row();
    if (!row) return false;
    for (const PackedSequence& sequence : *row) held_.erase(sequence.number);
    return true;
  }
  void rewind_items() override {
    source_->rewind(epoch());
    packer_ = RowPacker(options_.length, options_.window);
    held_.clear();
    is_ended_ = false;
  }

  std::optional<PackedRow> next_row() {
    const ItemBuffer read(source_->fields());
    while (!is_ended_) {
      const std::int64_t number = source_->index();
      if (!source_->next(read.memory())) {
        is_ended_ = true;
        break;
      }
      const TokenRun run =
          with_place([&] { return packed_.run_of(read.memory()); },
                     [&] { return fmt::format("item {} of {}", number, source_->name()); });
      if (run.length == 0) continue;
      held_.emplace(number, packed_.copy_of_run(read.memory(), run));
      if (auto row = packer_.add({number, run.length})) return row;
    }
    return packer_.close();
  }

  const StreamPtr source_;
  const std::string name_;
  const PackedFields packed_;
  const PackOptions options_;
  RowPacker packer_;
  std::unordered_map<std::int64_t, ItemBuffer> held_;  // runs in open rows, by item's index
  bool is_ended_ = false;                              // whether the source has ended
};

}  // namespace

DatasetPtr pack_sequences(DatasetPtr source, const PackOptions& options) {
  check_parts("pack_sequences", {&source, 1});
  check_any_order("pack_sequences", {&source, 1},
                  "pack the stream: stream_items(pack_sequences(stream, ...), items_per_epoch)");
  return std::make_shared<const PackedDataset>(std::move(source), options);
}

StreamPtr pack_sequences(StreamPtr source, const PackOptions& options) {
  if (!source) fail(Errc::invalid_argument, "pack_sequences: the source is null");
  return std::make_unique<PackedStream>(std::move(source), options);
}

}  // namespace weft
