#pragma once
/// Makes a dataset of some items of another dataset.

#include <cstdint>
#include <string_view>
#include <vector>

#include <weft/data/dataset.hpp>

namespace weft {

/// Acts like subset(), but the name of the result begins with `kind`.
DatasetPtr chosen_items(DatasetPtr source, std::vector<std::int64_t> indices,
                        std::string_view kind);

}  // namespace weft
