#include <array>

#include <weft/nn/attention.hpp>

#include "spmd/tensor/call.hpp"

namespace weft {

KeyValueCache::KeyValueCache(const Options& options) {
  const auto& [batch, num_heads, length, head_dim, name] = options;
  if (batch < 1 || num_heads < 1 || length < 1 || head_dim < 1) {
    fail(Errc::invalid_argument,
         "KeyValueCache '{}': batch = {}, num_heads = {}, length = {}, head_dim = {}: expected 1 "
         "or more",
         name, batch, num_heads, length, head_dim);
  }
  const Shape shape{batch, num_heads, length, head_dim};
  keys_ = make_buffer(name + ".keys", 0, shape);
  values_ = make_buffer(name + ".values", 0, shape);
  length_ = make_buffer(name + ".length", 0, {}, DType::i32);
}

KeyValueCache::All KeyValueCache::extend(const Tensor& keys, const Tensor& values,
                                         std::source_location loc) {
  Call call("KeyValueCache::extend", loc);
  const Shape& all = keys_.shape();
  const Shape& next = call.type(keys).shape;
  if (next.size() != 4 || next[0] != all[0] || next[1] != all[1] || next[2] > all[2] ||
      next[3] != all[3] || call.type(values).shape != next) {
    call.refuse("keys {} and values {} don't fit {}, at most {} tokens", call.node(keys)->label(),
                call.node(values)->label(), keys_.node()->label(), all[2]);
  }
  const ValueId place = call->check_room(call.value(length_), all[2], next[2]);
  const ValueId zero = call->constant(0, {DType::i32, {}});
  const std::array starts{zero, zero, place, zero};
  const auto extended = [&](Parameter& cache, const Tensor& more) {
    const Tensor update = cast(more, DType::f32);
    const ValueId before = call.value(cache);
    const Tensor after =
        call.result(call->dynamic_update_slice(before, call.value(update), starts));
    cache.assign(after);
    return after;
  };
  const Tensor length = call.result(place);
  const Shape places{next[2], all[2]};
  const Tensor mask = less_equal(iota(places, 1), iota(places, 0) + length);
  const Tensor all_keys = extended(keys_, keys);
  const Tensor all_values = extended(values_, values);
  length_.assign(length + static_cast<double>(next[2]));
  return {all_keys, all_values, mask};
}

void KeyValueCache::reset(std::source_location loc) {
  length_.assign(full({}, 0, DType::i32, loc), loc);
}

}  // namespace weft
