/// Contains the code of docs/porting.md: a test checks that each line on the page's right side
/// occurs in this file. Code that needs no job is run.

#include <array>
#include <fstream>
#include <iostream>
#include <iterator>
#include <regex>
#include <sstream>

#include <gtest/gtest.h>

#include <weft/weft.hpp>

#include "tests/support/interpret_runtime.hpp"

namespace weft::porting_test {
namespace {

using testing::InterpretRuntime;

Tensor numbers(const Shape& shape) {
  std::vector<float> elements(static_cast<std::size_t>(shape.num_elements()));
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<float>(i % 5) - 2;
  return to_device(elements, shape);
}

struct Net : Module {
  Linear fc{*this, "fc", {.in_features = 3, .out_features = 4}};
  Linear tied{*this, "tied", {.in_features = 3, .out_features = 4}};
  Conv2d conv{*this,
              "conv",
              {.in_channels = 3, .out_channels = 8, .kernel_size = 3, .window = {.padding = 1}}};
  BatchNorm2d bn{*this, "bn", {.num_features = 8}};
  Embedding embed{*this, "embed", {.num_embeddings = 10, .embedding_dim = 3}};
  Embedding padded{*this, "padded", {.num_embeddings = 10, .embedding_dim = 3, .padding_idx = 0}};
  Dropout2d drop{*this, "drop", 0.1};
  PReLU prelu{*this, "prelu", {}};
  LayerNorm ln{*this, "ln", {.size = 3}};
  ModuleList<Linear> layers{*this, "layers"};
  Parameter count{add_buffer("count", 0, {})};

  Tensor operator()(const Tensor& x) const { return fc(ln(x)); }
};

class Porting : public ::testing::Test {
 protected:
  InterpretRuntime runtime_;
  RuntimeScope scope_{runtime_};
};

TEST_F(Porting, Tensors) {
  const std::vector<float> data{1, 2, 3, 4, 5, 6};
  const std::vector<std::int64_t> labels{1, 2};
  const Tensor x = to_device(data, {2, 3});
  const auto [no, one] = std::tuple{zeros({2, 3}), ones_like(x)};
  const auto [range, line] = std::tuple{arange(6), linspace(0, 1, 5)};
  EXPECT_EQ(no.to_vector(), std::vector<float>(6, 0));
  EXPECT_EQ(one.to_vector(), std::vector<float>(6, 1));
  EXPECT_EQ(range.to_vector<std::int32_t>(), (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(line.to_vector(), (std::vector<float>{0, 0.25, 0.5, 0.75, 1}));
  const std::vector<Tensor> made{full({2, 3}, 0.5),   eye(3),           randint(0, 10, {4}),
                                 cast(x, DType::f64), stop_gradient(x), clone(x)};
  const std::vector<Tensor> random{rand({2, 3}), randn({2, 3})};
  const auto sizes = std::tuple(x.dim(0), x.shape().size(), x.num_elements());
  EXPECT_EQ(sizes, std::tuple(2, 2, 6));
  EXPECT_EQ(x.type().dtype, DType::f32);
  EXPECT_EQ(sum(x).item(), 21);
  EXPECT_EQ(x.to_vector(), data);
  EXPECT_EQ(to_device(labels, {2}).to_vector<std::int64_t>(), labels);
  std::cout << x << '\n';
  const auto from = [](DLManagedTensorVersioned* foreign) {
    return to_device(from_dlpack(foreign));
  };
  EXPECT_EQ(from(to_dlpack(to_host(x))).to_vector(), data);
}

TEST_F(Porting, Shapes) {
  const Tensor x = numbers({2, 3});
  const Tensor rows = iota({2}, 0);
  const Tensor places = iota({2, 3}, 1);
  const Tensor values = numbers({2, 3});
  const std::vector<Tensor> all{
      reshape(x, {3, -1}),
      transpose(x, 0, 1),
      permute(x, {1, 0}),
      slice(x, 1, 1, 3),
      slice(x, 0, 0, 2, 2),
      squeeze(slice(x, 1, 0, 1), 1),
      unsqueeze(x, 1),
      broadcast_to(x, {4, 2, 3}),
      flatten(x, 1),
      repeat(x, {2, 1}),
      pad(x, {{0, 0}, {1, 1}}),
      index_select(x, 0, rows),
      gather(x, 1, places),
      scatter_add(x, 1, places, values),
      one_hot(rows, 4),
  };
  const auto pairs = std::tuple(cat({x, x}, 1), stack({x, x}));
  const auto parts = std::tuple(split(x, 2, 1), chunk(x, 3, 1));
  const auto moved = std::tuple(flip(x, {0}), roll(x, 1, 1));
  const auto triangles = std::tuple(tril(x), triu(x, 1));
  EXPECT_EQ(std::get<1>(parts).size(), 3U);
  EXPECT_EQ(all[7].shape(), (Shape{4, 2, 3}));
  EXPECT_EQ(std::get<0>(pairs).shape(), (Shape{2, 6}));
  EXPECT_EQ(std::get<0>(moved).shape(), std::get<0>(triangles).shape());
  sync();
}

TEST_F(Porting, Arithmetic) {
  const Tensor a = numbers({2, 3});
  const Tensor b = numbers({2, 3}) + 1;
  const Tensor i = iota({2}, 0);
  const Tensor j = full({2}, 2, DType::i32);
  const std::vector<Tensor> single{
      floor_divide(i, j), matmul(a, transpose(b, 0, 1)), einsum("ij,kj->ik", {a, b}),
      log1p(exp(a)),      where(greater(a, 0), a, b),    masked_fill(a, greater(a, 0), -1e9),
  };
  const auto sums = std::tuple(a + b, a * 2, a / b);
  const auto clamped = std::tuple(clamp(a, 0, 1), clamp(a, 0));
  const auto reduced = std::tuple(sum(a), sum(a, {1}), mean(a, {0}, true));
  const auto largest = std::tuple(amax(a, {1}), argmax(a, 1));
  const auto spread = std::tuple(stddev(a, {1}), var(a, {1}, 0));
  const auto norms = std::tuple(norm(a), logsumexp(a, {1}));
  const auto running = std::tuple(cumsum(a, 1), prod(a));
  const auto sorted = std::tuple(sort(a, 1), topk(a, 2));
  const auto checks = std::tuple(all(a == b), all(isfinite(a)));
  const auto compared = std::tuple(a < b, a >= 0, a != b);
  const auto bounded = std::tuple(clamp(a, b, {}), square(a), normalize(a));
  EXPECT_EQ(std::get<0>(compared).type().dtype, std::get<1>(compared).type().dtype);
  EXPECT_EQ(std::get<0>(bounded).shape(), a.shape());
  EXPECT_EQ(std::get<0>(checks).item(), 0);
  EXPECT_EQ(std::get<1>(checks).item(), 1);
  EXPECT_NEAR(sum(abs(single[1] - single[2])).item(), 0, 1e-6);
}

TEST_F(Porting, Modules) {
  Net net;
  const Tensor x = numbers({2, 3});
  const Tensor image = numbers({2, 3, 4, 4});
  const Tensor q = numbers({1, 2, 4, 3});
  const Tensor k = q;
  const Tensor v = q;
  const Tensor added = numbers({4, 4});
  const Tensor seen = greater(added, 3);
  net.fc.requires_grad(false);
  EXPECT_FALSE(net.fc.weight.requires_grad());
  net.fc.requires_grad(true);
  net.fc.tie(net.fc.weight, net.tied.weight);
  init::kaiming_normal(net.conv.weight);
  const auto state = std::tuple(net.parameters(), net.buffers());
  EXPECT_EQ(std::get<1>(state).size(), 4U);
  net.train(), net.eval();
  const auto activations = std::tuple(relu(x), gelu(x), silu(x));
  const std::vector<Tensor> more_of_them{relu6(x), selu(x), logsigmoid(x), softshrink(x, 0.5)};
  const auto soft = std::tuple(softmax(x), log_softmax(x));
  const auto pools =
      std::tuple(max_pool2d(image, {.kernel_size = 2}), adaptive_avg_pool2d(image, 1));
  const std::vector<Tensor> others{interpolate(image, {.scale_factor = {2}}),
                                   attention(q, k, v, {.causal = true}),
                                   attention(q, k, v, {.mask = seen}),
                                   attention(q, k, v, {.bias = added}), net.bn(net.conv(image))};
  EXPECT_EQ(others[0].shape(), (Shape{2, 3, 8, 8}));
  sync();
}

TEST_F(Porting, Training) {
  Net net;
  const Tensor x = numbers({2, 3});
  const Tensor logits = net(x);
  const Tensor rows = iota({2}, 0);
  const Tensor a = numbers({2, 3});
  const Tensor b = full({2, 3}, 0.5);
  const std::uint64_t step = 0;
  manual_seed(0);
  const auto scope = detect_anomaly();
  const std::vector<Tensor> losses{
      cross_entropy(logits, rows, {.label_smoothing = 0.1}),
      cross_entropy(logits, rows, {.ignore_index = 0}),
      mse_loss(a, b, {.reduction = Reduction::sum}),
      binary_cross_entropy_with_logits(a, b),
  };
  AdamW optimizer(net.parameters(), {.lr = 1e-3});
  const Tensor loss = losses[0];
  std::vector<Tensor> grads = grad(loss, net.parameters());
  const Tensor y = sin(x);
  const Tensor v = b;
  const std::vector<Tensor> cotangents = vjp(std::array{y}, std::array{v}, std::array{x});
  clip_by_global_norm(grads, 1.0);
  optimizer.set_lr(cosine_schedule(step, {.lr = 1e-3, .steps = 100}));
  optimizer.step(grads);
  const Tensor narrow = autocast(DType::bf16, [&] { return net(x); });
  const Tensor again = checkpoint([&] { return net(x); });
  weft::sync();
  auto compiled = compile([&](const Tensor& batch) { return mean(net(batch)); });
  EXPECT_TRUE(std::isfinite(compiled(x).item()));
  EXPECT_FALSE(metrics_report().empty());
}

TEST_F(Porting, FunctionsOfJax) {
  const Tensor w = numbers({2, 3});
  const auto f = [](const Tensor& of) { return sum(of * of); };
  EXPECT_EQ(grad(f(w), std::array<Tensor, 1>{w})[0].to_vector(), (w * 2).to_vector());
  const auto g = [&](const Tensor& of) { return sin(of); };
  const Tensor v = full({2, 3}, 1);
  const auto pushed = jvp(std::array{g(w)}, std::array<Tensor, 1>{w}, std::array{v});
  EXPECT_EQ(pushed[0].shape(), w.shape());
  const Tensor kept = checkpoint([&] { return f(w); });
  const auto forward = [](const std::vector<Tensor>& x) { return round(x[0]); };
  const auto backward = [](const CustomVjp& vjp) { return std::vector{vjp.cotangent}; };
  const Tensor straight = custom_vjp(forward, backward, {w});
  EXPECT_EQ(straight.to_vector(), w.to_vector());
  const auto body = [](const Tensor& carry, const Tensor& item) {
    return std::pair(carry + item, carry);
  };
  const Tensor carry = full({3}, 0);
  const Tensor xs = w;
  const auto scanned = scan(body, carry, xs);
  EXPECT_EQ(scanned.carry.to_vector(), sum(w, {0}).to_vector());
  const auto is_small = [](const Tensor& c) { return less(sum(c), 10.0); };
  const auto twice = [](const Tensor& c) { return c * 2.0; };
  const Tensor start = full({3}, 1);
  const Tensor grown = while_loop(is_small, twice, start);
  EXPECT_EQ(grown.to_vector(), std::vector<float>(3, 4));
  const auto f_of_half = [&](const Tensor& of) { return f(of * 0.5); };
  const Tensor predicate = is_small(grown);
  const Tensor chosen = cond(predicate, f, f_of_half, w);
  EXPECT_EQ(chosen.to_vector(), f_of_half(w).to_vector());
}

TEST(PortingToChips, ExplicitSpmd) {
  using P = PartitionSpec;
  const Mesh mesh({2}, {"data"});
  InterpretRuntime runtime(mesh);
  const RuntimeScope scope(runtime);
  const auto f = [](const Tensor& part) {
    const std::vector<Tensor> of_all{psum(part, "data"), pmean(part, "data")};
    const Tensor own = reduce_scatter(part, "data");
    const Tensor other = ppermute(part, "data", {{0, 1}, {1, 0}});
    const auto chips = static_cast<double>(axis_size("data"));
    return of_all[0] + of_all[1] * chips +
           psum(sum(own) + sum(other * cast(axis_index("data"), DType::f32)), "data");
  };
  const auto run = shard_map(f, mesh, P{"data"}, P{});
  // Chip 0 has 1 and 2, chip 1 has 3 and 4. ppermute sends chip 0's part to chip 1.
  EXPECT_EQ(run(to_device(std::vector<float>{1, 2, 3, 4}, {4})).to_vector(),
            (std::vector<float>{4 + 4 + 13, 6 + 6 + 13}));
}

/// The body of a loop. It is compiled but not run.
[[maybe_unused]] void in_a_job(TrainContext& ctx, const DatasetPtr& dataset,
                               const std::vector<float>& part, const std::string& path) {
  Net net;
  AdamW optimizer(net.parameters(), {.lr = 1e-3});
  const Tensor w = net.fc.weight;
  mark_sharding(w, *ctx.mesh(), {"model", {}});
  fsdp(net, *ctx.mesh());
  DeviceLoader batches(dataset, {.batch_size = 32, .shuffle = true});
  for (const Batch& batch : batches) {
    const Tensor hidden = net(batch["x"]);
    mark_sharding(hidden, *ctx.mesh(), {{"data"}, {}});
    const Tensor loss = mean(hidden);
    optimizer.step(grad(loss, net.parameters()));
    add_step_closure([] {});
    weft::sync();
    ctx.report({{"loss", loss.item()}});
  }
  const Tensor local = to_device_local(part, {2, 3});
  const int rank = get_context().world_rank();
  if (rank == 0) save(net, path);
  load(net, path);
}

[[maybe_unused]] Result a_job(void (*loop)(TrainContext&, const Config&)) {
  return Trainer(loop, {.scaling = {.num_workers = 4}}).fit();
}

[[maybe_unused]] ScalingConfig spread_workers() {
  return ScalingConfig{.num_workers = 4, .placement_strategy = PlacementStrategy::spread};
}

// The following tests compare this file with the page.

std::string text_of(const std::string& path) {
  std::ifstream file(std::string(WEFT_TEST_DIR) + "/../" + path);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Returns the text without spaces, because clang-format decides where they are.
std::string squeezed(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (std::isspace(static_cast<unsigned char>(c)) == 0) result += c;
  }
  return result;
}

TEST(PortingPage, ShowsCodeOfThisFile) {
  const std::string source = squeezed(text_of("tests/unit/porting/porting_test.cpp"));
  std::istringstream page(text_of("docs/porting.md"));
  int idioms = 0;
  for (std::string line; std::getline(page, line);) {
    const auto cell = line.rfind("| `");
    if (!line.starts_with("| `") || cell == 0) continue;
    const std::string code = line.substr(cell + 3, line.rfind('`') - cell - 3);
    ++idioms;
    EXPECT_NE(source.find(squeezed(code)), std::string::npos) << code;
  }
  EXPECT_GE(idioms, 80);
}

}  // namespace
}  // namespace weft::porting_test
