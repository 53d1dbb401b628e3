#include <weft/nn/recurrent.hpp>

#include <cmath>
#include <utility>

#include <weft/nn/functional.hpp>
#include <weft/ops/control_flow.hpp>

#include "spmd/nn/init.hpp"
#include "spmd/tensor/call.hpp"

namespace weft {

Recurrent::Recurrent(Module& parent, std::string name, const RecurrentOptions& options,
                     const char* kind, std::int64_t num_gates)
    : Module(parent, std::move(name)), options_(options), kind_(kind) {
  const std::int64_t size = options.hidden_size;
  if (options.input_size < 1 || size < 1 || options.num_layers < 1) {
    fail(Errc::invalid_argument,
         "{} '{}': input_size = {}, hidden_size = {}, num_layers = {}: expected 1 or more", kind,
         path(), options.input_size, size, options.num_layers);
  }
  if (!(options.dropout >= 0 && options.dropout <= 1)) {
    fail(Errc::invalid_argument, "{} '{}': dropout = {}: expected 0 to 1", kind, path(),
         options.dropout);
  }
  const double bound = 1 / std::sqrt(static_cast<double>(size));
  const auto add = [&](const std::string& part, const Shape& shape) {
    return begin_uniform(add_parameter(part, 0, shape), bound);
  };
  const int directions = options.bidirectional ? 2 : 1;
  for (std::int64_t layer = 0; layer < options.num_layers; ++layer) {
    const std::int64_t features = layer == 0 ? options.input_size : directions * size;
    for (int direction = 0; direction < directions; ++direction) {
      const std::string end = fmt::format("_l{}{}", layer, direction == 0 ? "" : "_reverse");
      Weights& weights = weights_.emplace_back();
      weights.ih = add("weight_ih" + end, {num_gates * size, features});
      weights.hh = add("weight_hh" + end, {num_gates * size, size});
      if (!options.bias) continue;
      weights.bias_ih = add("bias_ih" + end, {num_gates * size});
      weights.bias_hh = add("bias_hh" + end, {num_gates * size});
    }
  }
}

Recurrent::Carry Recurrent::first_carry(const std::vector<Tensor>& first, std::int64_t place,
                                        const Tensor& x) const {
  const Shape shape{x.dim(1), options_.hidden_size};
  Carry carry;
  for (const Tensor& given : first) {
    carry.push_back(given.defined() ? reshape(slice(given, 0, place, place + 1), shape)
                                    : full(shape, 0, x.type().dtype));
  }
  return carry;
}

Recurrent::Walk Recurrent::over_time(const Tensor& from_x, const Carry& carry,
                                     const Weights& weights, bool reverse) const {
  const auto one_step = [&](const Carry& before, const Tensor& part) {
    Carry next = step(part, before, weights);
    for (std::size_t k = 0; k < next.size(); ++k) {
      next[k] = cast(next[k], before[k].type().dtype);  // may differ under autocast
    }
    return std::pair(next, next[0]);
  };
  const auto [last, all] = scan(one_step, carry, from_x, {.reverse = reverse});
  return {all, last};
}

Recurrent::Outputs Recurrent::run(const Tensor& x, const std::vector<Tensor>& first,
                                  const std::source_location& loc) const {
  Call call(kind_, loc);
  const Shape& shape = call.type(x).shape;
  const auto num_directions = static_cast<std::int64_t>(options_.bidirectional ? 2 : 1);
  if (shape.size() != 3 || shape[2] != options_.input_size || shape.num_elements() == 0) {
    call.refuse("'{}' expects a non-empty [{},{}], but got {}", path(),
                options_.batch_first ? "batch,time" : "time,batch", options_.input_size,
                call.node(x)->label());
  }
  Tensor y = options_.batch_first ? transpose(x, 0, 1) : x;
  const Shape carried{num_directions * options_.num_layers, y.dim(1), options_.hidden_size};
  for (const Tensor& given : first) {
    if (!given.defined() || call.type(given).shape == carried) continue;
    call.refuse("the first state {} of '{}' doesn't fit: expected [{}]", call.node(given)->label(),
                path(), carried.to_string());
  }
  std::vector<std::vector<Tensor>> last(first.size());
  for (std::int64_t layer = 0; layer < options_.num_layers; ++layer) {
    if (layer > 0 && is_training()) y = dropout(y, options_.dropout);
    std::vector<Tensor> directions;
    for (std::int64_t direction = 0; direction < num_directions; ++direction) {
      const std::int64_t place = layer * num_directions + direction;
      const Weights& weights = weights_[static_cast<std::size_t>(place)];
      const Tensor from_x = linear(y, weights.ih, weights.bias_ih);
      Walk walk = over_time(from_x, first_carry(first, place, y), weights, direction == 1);
      directions.push_back(walk.all);
      for (std::size_t k = 0; k < last.size(); ++k) last[k].push_back(walk.carry[k]);
    }
    y = directions.size() == 1 ? directions[0] : cat(directions, -1);
  }
  Outputs outputs{.all = options_.batch_first ? transpose(y, 0, 1) : y, .last = {}};
  for (const std::vector<Tensor>& of_layers : last) outputs.last.push_back(stack(of_layers));
  return outputs;
}

RNN::RNN(Module& parent, std::string name, const Options& options)
    : Recurrent(parent, std::move(name), options, "RNN", 1) {}

RecurrentResult RNN::operator()(const Tensor& x, const Tensor& h_0,
                                std::source_location loc) const {
  const Outputs outputs = run(x, {h_0}, loc);
  return {outputs.all, outputs.last[0]};
}

Recurrent::Carry RNN::step(const Tensor& from_x, const Carry& carry, const Weights& weights) const {
  return {tanh(from_x + linear(carry[0], weights.hh, weights.bias_hh))};
}

GRU::GRU(Module& parent, std::string name, const Options& options)
    : Recurrent(parent, std::move(name), options, "GRU", 3) {}

RecurrentResult GRU::operator()(const Tensor& x, const Tensor& h_0,
                                std::source_location loc) const {
  const Outputs outputs = run(x, {h_0}, loc);
  return {outputs.all, outputs.last[0]};
}

Recurrent::Carry GRU::step(const Tensor& from_x, const Carry& carry, const Weights& weights) const {
  const Tensor& h = carry[0];
  const std::vector<Tensor> in = chunk(from_x, 3, -1);
  const std::vector<Tensor> back = chunk(linear(h, weights.hh, weights.bias_hh), 3, -1);
  const Tensor reset = sigmoid(in[0] + back[0]);
  const Tensor update = sigmoid(in[1] + back[1]);
  const Tensor candidate = tanh(in[2] + reset * back[2]);
  return {candidate + update * (h - candidate)};
}

LSTM::LSTM(Module& parent, std::string name, const Options& options)
    : Recurrent(parent, std::move(name), options, "LSTM", 4) {}

LSTM::Result LSTM::operator()(const Tensor& x, const State& state, std::source_location loc) const {
  const Outputs outputs = run(x, {state.h_0, state.c_0}, loc);
  return {outputs.all, outputs.last[0], outputs.last[1]};
}

Recurrent::Carry LSTM::step(const Tensor& from_x, const Carry& carry,
                            const Weights& weights) const {
  const Tensor all = from_x + linear(carry[0], weights.hh, weights.bias_hh);
  const std::vector<Tensor> gates = chunk(all, 4, -1);
  const Tensor cell = sigmoid(gates[1]) * carry[1] + sigmoid(gates[0]) * tanh(gates[2]);
  return {sigmoid(gates[3]) * tanh(cell), cell};
}

}  // namespace weft
