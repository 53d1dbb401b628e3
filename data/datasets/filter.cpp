#include <utility>

#include <weft/data/transforms.hpp>
#include <weft/tensor/error.hpp>

#include "data/items/chosen.hpp"
#include "data/items/fields.hpp"
#include "data/items/item_reading.hpp"
#include "data/remote/scan_progress.hpp"

namespace weft {

DatasetPtr filter(DatasetPtr source, const std::function<bool(const ItemView& item)>& keep,
                  const std::string& name) {
  check_parts(name, {&source, 1});
  if (!keep) fail(Errc::invalid_argument, "{}: there is no function", name);
  const ItemBuffer buffer(source->fields());
  ScanProgress progress(name_of_parts(name, {&source, 1}), "items", source->size());
  std::vector<std::int64_t> kept;
  for (std::int64_t index = 0; index < source->size(); ++index) {
    source->read({.index = index}, buffer.memory());
    const auto where = [&] {
      return fmt::format("{}: item {} of epoch 0", name_of_parts(name, {&source, 1}), index);
    };
    if (with_place([&] { return keep(buffer.view()); }, where)) kept.push_back(index);
    progress.advance(1);
  }
  return chosen_items(std::move(source), std::move(kept), name);
}

}  // namespace weft
