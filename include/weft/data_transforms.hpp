#pragma once
/// Datasets made of datasets. Nothing is read before an item is, except by filter().

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <weft/dataset.hpp>
#include <weft/item_random.hpp>

namespace weft {

/// Reads `in`, writes all elements of all fields of `out`. Called by many threads at once. `random`
/// is a function of the item alone, so that a step that runs again, on whatever worker, has the
/// same data.
using MapFunction =
    std::function<void(const ItemView& in, const ItemWriter& out, ItemRandom& random)>;

struct MapOptions {
  /// Fields of the source that items have as they are, after those of the function. They are read
  /// straight to their place.
  std::vector<std::string> keep{};
  std::string name = "map";  ///< for errors
};

/// Items of `fields`, made by a function. A map of a map draws other numbers than the inner one;
/// maps in the parts of a zip() draw the same, so that they can treat a picture and its mask alike.
DatasetPtr map(DatasetPtr source, std::vector<Field> fields, MapFunction function,
               MapOptions options = {});

/// The items for which the function returns true. It is called here, once for each item in order
/// (of epoch 0, seed 0), and the numbers of those that stay are kept, 8 bytes each.
DatasetPtr filter(DatasetPtr source, const std::function<bool(const ItemView& item)>& keep,
                  const std::string& name = "filter");

/// Item i has the fields of item i of every part. Throws invalid_argument for parts of different
/// sizes, and for a field's name that two of them have.
DatasetPtr zip(std::vector<DatasetPtr> parts);

/// The items of the first part, then those of the second, ... Throws invalid_argument unless all
/// have the same fields.
DatasetPtr concat(std::vector<DatasetPtr> parts);

/// Items begin..end-1.
DatasetPtr subset(DatasetPtr source, std::int64_t begin, std::int64_t end);
/// These items, in this order; an item may be there more than once.
DatasetPtr subset(DatasetPtr source, std::vector<std::int64_t> indices);

struct SplitOptions {
  /// The items are dealt out in an order that is a function of this number. Default: the first part
  /// has the first items.
  std::optional<std::uint64_t> shuffle_seed{};
};
/// A subset for each share, which together have each item once: {0.8, 0.2}, or {4, 1}.
std::vector<DatasetPtr> split(const DatasetPtr& source, const std::vector<double>& shares,
                              const SplitOptions& options = {});

/// The number of consecutive items of a mix in which the weights hold exactly.
inline constexpr std::int64_t kMixBlock = 65'536;

struct MixOptions {
  /// Items of an epoch. Default: as many as the parts have together. The next epoch goes on where
  /// the last one ended.
  std::int64_t size = 0;
  /// Each pass over a part is in an order of its own. Otherwise it is in the part's order.
  bool shuffle = true;
};
/// Items of all parts, mixed: of each kMixBlock consecutive ones, counted over all epochs, each part
/// gives its weight's share, to within one item; their order is random. A part is gone through as
/// often as need be, and its items are drawn with the number of the pass as epoch. All of it is a
/// function of the item's seed, epoch and index. Throws invalid_argument unless all parts have the
/// same fields, and for a weight that is no finite positive number or too small for one item.
DatasetPtr mix(std::vector<DatasetPtr> parts, const std::vector<double>& weights,
               const MixOptions& options = {});

}  // namespace weft
