#pragma once
/// Stream: items that can be read only one after the other.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <weft/dataset.hpp>

namespace weft {

/// The items of an epoch are the same each time that it is read. For one thread at a time.
class Stream {
 public:
  virtual ~Stream() = default;

  /// For errors.
  virtual std::string name() const = 0;
  /// Alike for all items. Names aren't empty and there once.
  virtual const std::vector<Field>& fields() const = 0;
  std::uint64_t epoch() const { return epoch_; }
  /// The number of the next item in its epoch.
  std::int64_t index() const { return index_; }

  /// Writes the next item as Dataset::read() does, or returns false at the end of the epoch. Throws
  /// as Dataset::read(); then the stream is to be rewound.
  bool next(ItemMemory out);
  /// As next(), but the item isn't wanted, so that it needn't be decoded.
  bool skip();
  /// Goes to the first item of an epoch. A new stream is there in epoch 0.
  void rewind(std::uint64_t epoch);

 private:
  /// As above, of item index() of epoch(). skip_item() may read to memory of its own.
  virtual bool next_item(ItemMemory out) = 0;
  virtual bool skip_item() = 0;
  virtual void rewind_items() = 0;

  template <typename Function>
  bool take(Function function);

  std::uint64_t epoch_ = 0;
  std::int64_t index_ = 0;
};
using StreamPtr = std::unique_ptr<Stream>;

/// The items in random order: each is drawn from `size` that are held in memory, whose place the
/// next one of the source takes. (WebDataset's and tf.data's shuffle.) A function of the source,
/// the seed and the epoch. skip() reads what it has to hold.
StreamPtr shuffle_buffer(StreamPtr source, std::int64_t size, std::uint64_t seed = 0);

/// The rows of a stream as items, for a DeviceLoader with shuffle = false and num_threads = 1: item
/// i of epoch e is row e * items_per_epoch + i. Items that come next take no longer than from the
/// stream; to go back, or on by far, reads the stream from the beginning of an epoch. Throws
/// invalid_argument for items_per_epoch < 1.
DatasetPtr stream_items(StreamPtr stream, std::int64_t items_per_epoch);

}  // namespace weft
