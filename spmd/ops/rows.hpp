#pragma once
/// A row for each op of the list, in its family's file.

#include "spmd/ops/row.hpp"

namespace weft::rows {

#define WEFT_ROW(name, number) extern const OpRow name;
WEFT_OPS(WEFT_ROW)
#undef WEFT_ROW

}  // namespace weft::rows
