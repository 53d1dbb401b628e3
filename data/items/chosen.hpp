#pragma once
/// A dataset of some of the items of another one.

#include <cstdint>
#include <string_view>
#include <vector>

#include <weft/data/dataset.hpp>

namespace weft {

/// Acts as subset(); the result's name is "kind(source)".
DatasetPtr chosen_items(DatasetPtr source, std::vector<std::int64_t> indices,
                        std::string_view kind);

}  // namespace weft
