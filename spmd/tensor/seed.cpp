#include <weft/ops/seed.hpp>

namespace weft {
namespace {

thread_local std::uint64_t thread_seed = 0;

}  // namespace

void manual_seed(std::uint64_t seed) { thread_seed = seed; }
std::uint64_t initial_seed() { return thread_seed; }

}  // namespace weft
