#include "tests/support/random_training.hpp"

#include <array>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <weft/nn/functional.hpp>
#include <weft/nn/module.hpp>
#include <weft/nn/transforms.hpp>
#include <weft/ops/control_flow.hpp>
#include <weft/ops/shapes.hpp>
#include <weft/sharding/shard_map.hpp>

#include "tests/support/interpret_runtime.hpp"

namespace weft::testing {
namespace {

constexpr int kDepthMax = 3;
constexpr std::int64_t kSizes[] = {2, 3, 4, 6, 8};
using Nothing = std::tuple<>;

/// A Runtime that records programs and computes nothing.
class Recording : public InterpretRuntime {
 public:
  using InterpretRuntime::InterpretRuntime;

 protected:
  Execution execute(const Program& program, const Fingerprint& /*key*/,
                    std::span<const Elements> /*inputs*/, const RunSite& /*site*/) override {
    Execution zeros;
    for (const ProgramInput& input : program.inputs) {
      zeros.input_shardings.push_back(input.sharding);
    }
    for (const ProgramOutput& output : program.outputs) {
      const auto count = static_cast<std::size_t>(program.type(output.value).num_elements());
      zeros.outputs.emplace_back(count, 0.0);
      zeros.output_shardings.push_back(
          output.updates < 0 ? output.sharding
                             : zeros.input_shardings[static_cast<std::size_t>(output.updates)]);
    }
    return zeros;
  }
};

class TrainingMaker {
 public:
  TrainingMaker(const Mesh& mesh, Random& random) : mesh_(mesh), random_(random) {}

  void run() {
    rows_ = any_of(kSizes);
    size_ = any_of(kSizes);
    length_ = 1 + below(3);
    x_ = parameter("x", {rows_, size_});
    w_ = parameter("w", {size_, size_});
    b_ = parameter("b", {size_});
    items_ = parameter("items", {length_, rows_, size_});
    const std::vector<Parameter> all{x_, w_, b_, items_};
    auto [loss, grads] = first_gradients(all);
    std::vector<Tensor> second;
    if (random_.one_in(2)) {
      Tensor squares = full({}, 0);
      for (const Tensor& g : grads) squares = squares + sum(g * g);
      second = grad(squares, all);
    }
    if (random_.one_in(4)) {
      const std::vector<Tensor>& step = second.empty() ? grads : second;
      for (std::size_t i = 0; i < all.size(); ++i) {
        Parameter updated = all[i];
        updated.assign(Tensor(updated) - step[i] * 0.125);
      }
    }
    sync();
  }

 private:
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(bound)));
  }
  template <std::size_t N>
  std::int64_t any_of(const std::int64_t (&sizes)[N]) {
    return sizes[random_.below(N)];
  }

  /// Returns a parameter. Each mesh axis shards one of its dims or none, seldom a dim that the axis
  /// doesn't divide.
  Parameter parameter(const char* name, const Shape& shape) {
    const std::vector<float> zeros(static_cast<std::size_t>(shape.num_elements()), 0.0F);
    const Parameter made = make_parameter(name, zeros, shape);
    if (random_.one_in(4)) return made;
    std::vector<std::vector<std::string>> names(static_cast<std::size_t>(shape.size()));
    std::vector<std::int64_t> parts(names.size(), 1);
    for (int axis = 0; axis < mesh_.num_axes(); ++axis) {
      if (random_.one_in(3)) continue;
      const auto dim = random_.below(names.size());
      const std::int64_t more = parts[dim] * mesh_.shape()[static_cast<std::size_t>(axis)];
      if (shape[static_cast<int>(dim)] % more != 0 && !random_.one_in(6)) continue;
      parts[dim] = more;
      names[dim].push_back(mesh_.axis_names()[static_cast<std::size_t>(axis)]);
    }
    std::vector<AxisNames> dims;
    for (const auto& of_dim : names) dims.emplace_back(of_dim);
    mark_sharding(made, mesh_, PartitionSpec(std::move(dims)));
    return made;
  }

  std::pair<Tensor, std::vector<Tensor>> first_gradients(const std::vector<Parameter>& all) {
    if (rows_ % 2 == 0 && random_.one_in(4)) {
      const std::array<Tensor, 1> batch{Tensor(x_)};
      uses_items_ = false;  // the items have as many rows as the whole batch
      rows_ /= 2;
      LossAndGradients made = micro_batches(
          2, batch, all, [&](std::span<const Tensor> part) { return loss_of(block(part[0])); });
      return {made.loss, made.grads};
    }
    const Tensor loss = loss_of(block(x_));
    return {loss, grad(loss, all)};
  }

  Tensor loss_of(const Tensor& y) {
    switch (random_.below(3)) {
      case 0: return mean(y * y);
      case 1: return sum(tanh(y)) * 0.25;
      default: return sum(log_softmax(y, -1) * -0.125);
    }
  }

  /// Returns one or two layers, each from [rows, size] to [rows, size].
  Tensor block(const Tensor& x) {
    ++depth_;
    Tensor y = layer(x);
    if (random_.one_in(3)) y = layer(y);
    --depth_;
    return y;
  }

  Tensor layer(const Tensor& x) {
    switch (depth_ > kDepthMax ? random_.below(5) : random_.below(15)) {
      case 0:
      case 1: return tanh(matmul(x, w_) + b_);
      case 2: return sin(x) * 0.5 + x * 0.25;
      case 3: return of_rows(x);
      case 4: return x * mean(x * x, {random_.one_in(2) ? 0 : 1}, true);
      case 5:
      case 6:
      case 7: return counted_scan(x);
      case 8:
      case 9: return uses_items_ && axis_.empty() ? scan_of_items(x) : counted_scan(x);
      case 10:
      case 11: return branches(x);
      case 12: return checkpoint([&] { return block(x); });
      case 13: return axis_.empty() ? x + stop_gradient(while_less(x)) * 0.125 : of_rows(x);
      default: return axis_.empty() ? function_of_shards(x) : between_chips(x);
    }
  }

  /// Computes the softmax of each row, or subtracts the mean of all rows. Norms aren't used,
  /// because their constants round to f32 differently when the rows are sharded.
  Tensor of_rows(const Tensor& x) {
    return random_.one_in(2) ? softmax(x, -1) : x - mean(x, {0}, true);
  }

  Tensor counted_scan(const Tensor& x) {
    const ScanOptions options{.reverse = random_.one_in(2), .length = 1 + below(3)};
    const auto made = scan(
        [&](const Tensor& h, const Nothing&) {
          const Tensor next = tanh(block(h));
          return std::pair(next, mean(next * next));
        },
        x, Nothing(), options);
    return made.carry + mean(made.stacked) * 0.5;
  }

  Tensor scan_of_items(const Tensor& x) {
    const auto made = scan(
        [&](const Tensor& h, const Tensor& item) {
          const Tensor next = tanh(block(h) + item);
          return std::pair(next, next * item);
        },
        x, Tensor(items_), {.reverse = random_.one_in(2)});
    return made.carry + mean(made.stacked, {0}) * 0.5;
  }

  /// Adds a cond whose predicate is equal on all chips.
  Tensor branches(const Tensor& x) {
    Tensor level = mean(x);
    if (!axis_.empty()) level = pmean(level, axis_);
    const double bound = static_cast<double>(below(5)) * 0.317 - 0.6234;
    return cond(
        greater(level, bound), [&](const Tensor& v) { return block(v); },
        [&](const Tensor& v) { return random_.one_in(2) ? v * 0.25 : block(v); }, x);
  }

  Tensor while_less(const Tensor& x) {
    return while_loop([](const Tensor& c) { return less(mean(c * c), 7.4321); },
                      [&](const Tensor& c) { return c * 1.5 + 0.375; }, tanh(x));
  }

  /// Maps block() over the chips of an axis, each with its own rows; if the axis doesn't divide the
  /// rows, makes a scan.
  Tensor function_of_shards(const Tensor& x) {
    const auto axis = static_cast<std::size_t>(below(mesh_.num_axes()));
    if (rows_ % mesh_.shape()[axis] != 0) return counted_scan(x);
    axis_ = mesh_.axis_names()[axis];
    const std::int64_t whole = rows_;
    rows_ /= mesh_.shape()[axis];
    const PartitionSpec spec{axis_};
    const Tensor y =
        shard_map([&](const Tensor& part) { return block(part); }, mesh_, spec, spec)(x);
    rows_ = whole;
    axis_.clear();
    return y;
  }

  Tensor between_chips(const Tensor& x) {
    switch (random_.below(3)) {
      case 0: return x * pmean(mean(x * x), axis_);
      case 1: return ring_shift(x, axis_);
      default: return reduce_scatter(all_gather(x, axis_) * 0.5, axis_);
    }
  }

  const Mesh& mesh_;
  Random& random_;
  std::int64_t rows_ = 0, size_ = 0, length_ = 0;
  Parameter x_, w_, b_, items_;
  bool uses_items_ = true;
  std::string axis_;  // the axis of the enclosing shard_map; "": none
  int depth_ = 0;
};

}  // namespace

Program random_training(const Mesh& mesh, Random& random) {
  Recording runtime(mesh);
  const RuntimeScope scope(runtime);
  TrainingMaker(mesh, random).run();
  return std::move(runtime.programs.back());
}

}  // namespace weft::testing
