#include "spmd/tensor/trace.hpp"

namespace weft {

/// The state from which a program's random bits start. It holds all that changes from step to step,
/// so no step is a new program.
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
  // A call in a loop has a number for each iteration.
  std::uint32_t numbers = 1;
  const auto open = regions_.loops.open();
  for (auto loop = open.rbegin(); loop != open.rend(); ++loop) {
    const PhiloxBlock step{0, 0, numbers, 0};
    const ValueId iteration =
        builder_.broadcast_in_dim(builder_.convert(loop->number, type.dtype), type.shape, {});
    const ValueId steps = builder_.binary(OpKind::multiply, iteration,
                                          builder_.constant(std::as_bytes(std::span(step)), type));
    state = builder_.binary(OpKind::add, state, steps);
    numbers *= static_cast<std::uint32_t>(loop->length);
  }
  // And one for each chip that has its own values.
  if (const AtomMask manual = regions_.shard_maps.manual(); manual != 0) {
    const AtomList atoms = builder_.mesh().list(manual);
    const std::int64_t chips = builder_.mesh().count(atoms);
    const auto word = static_cast<std::int64_t>(atoms.bits());
    const ValueId place =
        builder_.enter(builder_.iota({type.dtype, {chips}}, 0), std::array{word, word});
    const PhiloxBlock step{0, 0, numbers, 0};
    const ValueId steps = builder_.binary(
        OpKind::multiply, builder_.broadcast_in_dim(place, type.shape, std::array{std::int64_t{0}}),
        builder_.constant(std::as_bytes(std::span(step)), type));
    state = builder_.binary(OpKind::add, state, steps);
    numbers *= static_cast<std::uint32_t>(chips);
  }
  random_calls_ += numbers;
  return builder_.rng_bit_generator(state, shape);
}

}  // namespace weft
