#include "transport/reduce/reduce_kernel.hpp"

namespace weft {

const ReduceTable kPortableReduce = reduce_table();

}  // namespace weft
