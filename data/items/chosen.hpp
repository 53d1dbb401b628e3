#pragma once
/// Some of the items of a dataset.

#include <cstdint>
#include <string_view>
#include <vector>

#include <weft/dataset.hpp>

namespace weft {

/// As subset(), with a name "kind(source)".
DatasetPtr chosen_items(DatasetPtr source, std::vector<std::int64_t> indices,
                        std::string_view kind);

}  // namespace weft
