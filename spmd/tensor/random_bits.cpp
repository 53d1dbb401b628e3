#include <weft/ops/seed.hpp>

#include "spmd/tensor/trace.hpp"

namespace weft {

/// Returns the initial state for a program's random bits. Whatever changes from step to step is in
/// this state, so that all steps can run the same program.
HostData Trace::random_words() {
  const std::uint64_t step = runtime_->step();
  if (step != random_step_) random_count_ = 0;
  random_step_ = step;
  const std::uint64_t seed = initial_seed();
  const PhiloxBlock words{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                          random_count_, static_cast<std::uint32_t>(step)};
  const auto bytes = std::as_bytes(std::span(words));
  return std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
}

ValueId Trace::random_bits(const Shape& shape, const std::source_location& loc) {
  const TensorType type{DType::u32, {4}};
  if (random_state_ == nullptr) {
    random_state_ = host_node(type, InputKind::runtime_scalar, "", *random_words());
  }
  const PhiloxBlock number{0, 0, random_calls_, 0};
  ValueId state = builder_.binary(OpKind::add, value_of(random_state_, loc),
                                  builder_.constant(std::as_bytes(std::span(number)), type));
  // Calls are numbered, and each iteration of the enclosing loops and each chip of a shard_map has
  // a number of its own. If the number of iterations is unknown, each iteration instead gets its
  // own state, made of random bits.
  std::uint32_t numbers = 1;
  bool is_counted = true;
  const auto add_numbers = [&](ValueId which, std::int64_t count) {
    is_counted = is_counted && count > 0;
    if (!is_counted) state = builder_.rng_bit_generator(state, type.shape);
    const PhiloxBlock step{0, 0, is_counted ? numbers : 1, 0};
    const ValueId steps =
        builder_.binary(OpKind::multiply, builder_.broadcast_in_dim(which, type.shape, {}),
                        builder_.constant(std::as_bytes(std::span(step)), type));
    state = builder_.binary(OpKind::add, state, steps);
    if (is_counted) numbers *= static_cast<std::uint32_t>(count);
  };
  const auto open = regions_.loops.open();
  for (auto loop = open.rbegin(); loop != open.rend(); ++loop) {
    if (loop->kind == TracedKind::cond) continue;
    add_numbers(builder_.convert(loop->number, type.dtype), loop->length);
  }
  if (const AtomMask manual = regions_.shard_maps.manual(); manual != 0) {
    const AtomList chips = builder_.mesh().list(manual);
    add_numbers(builder_.number_in_group(type.dtype, chips, manual), builder_.mesh().count(chips));
  }
  random_calls_ += numbers;
  return builder_.rng_bit_generator(state, shape);
}

}  // namespace weft
