#include "transport/reduce/reduce_kernel.hpp"

namespace weft {

const ReduceTable kAvx512Reduce = reduce_table();

}  // namespace weft
