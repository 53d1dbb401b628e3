#include <weft/data/item_random.hpp>

#include <weft/tensor/error.hpp>

#include "data/items/words.hpp"

namespace weft {

ItemRandom::ItemRandom(const Item& item)
    : key_(data_key(item.seed, DataStream::item, item.epoch)),
      index_(static_cast<std::uint64_t>(item.index)) {}

ItemRandom::result_type ItemRandom::operator()() { return draw_word(key_, index_, drawn_, block_); }

float ItemRandom::uniform() { return weft::uniform((*this)()); }

std::int64_t ItemRandom::below(std::int64_t count) {
  if (count < 1) fail(Errc::invalid_argument, "below: count = {}: expected at least 1", count);
  return static_cast<std::int64_t>(number_below(*this, static_cast<std::uint64_t>(count)));
}

}  // namespace weft
