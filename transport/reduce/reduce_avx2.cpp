#include "transport/reduce/reduce_kernel.hpp"

namespace weft {

const ReduceTable kAvx2Reduce = reduce_table();

}  // namespace weft
