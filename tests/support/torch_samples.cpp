#include "tests/support/torch_samples.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>

#include <fmt/ranges.h>

#include <weft/nn/functional.hpp>
#include <weft/nn/losses.hpp>
#include <weft/ops/along_dim.hpp>
#include <weft/ops/interpolate.hpp>

#include "spmd/program/element.hpp"
#include "tests/support/golden.hpp"

namespace weft::testing {
namespace {

using Numbers = std::vector<double>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Reduction kSum = Reduction::sum;

/// The operands and the arguments of an op.
struct Call {
  std::vector<Tensor> x;
  Json args;

  const Tensor& operator[](std::size_t i) const { return x[i]; }
  int dim() const { return args.at("dim"); }
  std::vector<int> dims() const { return args.value("dims", std::vector<int>{}); }
  bool keepdim() const { return args.value("keepdim", false); }
  std::optional<double> number(const char* name) const {
    return args.contains(name) ? std::optional(args.at(name).get<double>()) : std::nullopt;
  }
  std::optional<int> only_dim() const {
    return args.contains("dims") ? std::optional(dims()[0]) : std::nullopt;
  }
  std::int64_t rows() const { return x[0].shape()[0]; }
};
using Function = std::function<Tensor(const Call&)>;

Function of_one(Tensor (*function)(Operand)) {
  return [function](const Call& call) { return function(call[0]); };
}
Function of_two(Tensor (*function)(Operand, Operand)) {
  return [function](const Call& call) { return function(call[0], call[1]); };
}
Function reduction(Tensor (*function)(Operand, std::vector<int>, bool)) {
  return [function](const Call& call) { return function(call[0], call.dims(), call.keepdim()); };
}

std::map<std::string, Function> elementwise() {
  return {
      {"exp", of_one(exp)},
      {"log", of_one(log)},
      {"sqrt", of_one(sqrt)},
      {"rsqrt", of_one(rsqrt)},
      {"tanh", of_one(tanh)},
      {"sigmoid", of_one(sigmoid)},
      {"softplus", of_one(softplus)},
      {"sin", of_one(sin)},
      {"cos", of_one(cos)},
      {"tan", of_one(tan)},
      {"log1p", of_one(log1p)},
      {"expm1", of_one(expm1)},
      {"erf", of_one(erf)},
      {"floor", of_one(floor)},
      {"ceil", of_one(ceil)},
      {"round", of_one(round)},
      {"sign", of_one(sign)},
      {"abs", of_one(abs)},
      {"neg", of_one(operator-)},
      {"relu", of_one(relu)},
      {"gelu", [](const Call& c) { return gelu(c[0]); }},
      {"silu", of_one(silu)},
      {"leaky_relu", [](const Call& c) { return leaky_relu(c[0]); }},
      {"elu", [](const Call& c) { return elu(c[0]); }},
      {"mish", of_one(mish)},
      {"hardsigmoid", of_one(hardsigmoid)},
      {"hardswish", of_one(hardswish)},
      {"celu", [](const Call& c) { return celu(c[0], 1.5); }},
      {"selu", of_one(selu)},
      {"hardtanh", [](const Call& c) { return hardtanh(c[0]); }},
      {"relu6", of_one(relu6)},
      {"threshold", [](const Call& c) { return threshold(c[0], 0.5, -2); }},
      {"hardshrink", [](const Call& c) { return hardshrink(c[0]); }},
      {"softshrink", [](const Call& c) { return softshrink(c[0]); }},
      {"tanhshrink", of_one(tanhshrink)},
      {"softsign", of_one(softsign)},
      {"logsigmoid", of_one(logsigmoid)},
      {"prelu", [](const Call& c) { return prelu(c[0], c[1]); }},
      {"glu", [](const Call& c) { return glu(c[0], c.dim()); }},
      {"softmin", [](const Call& c) { return softmin(c[0], c.dim()); }},
      {"logical_not", of_one(logical_not)},
      {"isfinite", of_one(isfinite)},
      {"stop_gradient", of_one(stop_gradient)},
      {"add", of_two(operator+)},
      {"subtract", of_two(operator-)},
      {"multiply", of_two(operator*)},
      {"divide", of_two(operator/)},
      {"maximum", of_two(maximum)},
      {"minimum", of_two(minimum)},
      {"atan2", of_two(atan2)},
      {"fmod", of_two(fmod)},
      {"remainder", of_two(remainder)},
      {"pow", of_two(pow)},
      {"equal", of_two(equal)},
      {"not_equal", of_two(not_equal)},
      {"less", of_two(less)},
      {"less_equal", of_two(less_equal)},
      {"greater", of_two(greater)},
      {"greater_equal", of_two(greater_equal)},
      {"logical_and", of_two(logical_and)},
      {"logical_or", of_two(logical_or)},
      {"logical_xor", of_two(logical_xor)},
      {"where", [](const Call& c) { return where(c[0], c[1], c[2]); }},
      {"clamp", [](const Call& c) { return clamp(c[0], c.number("min"), c.number("max")); }},
      {"masked_fill", [](const Call& c) { return masked_fill(c[0], c[1], 2); }},
  };
}

std::map<std::string, Function> reductions() {
  return {
      {"sum", reduction(sum)},
      {"prod", reduction(prod)},
      {"mean", reduction(mean)},
      {"amax", reduction(amax)},
      {"amin", reduction(amin)},
      {"any", reduction(any)},
      {"all", reduction(all)},
      {"logsumexp", reduction(logsumexp)},
      {"var", [](const Call& c) { return var(c[0], c.dims(), 1, c.keepdim()); }},
      {"stddev", [](const Call& c) { return stddev(c[0], c.dims(), 1, c.keepdim()); }},
      {"norm", [](const Call& c) { return norm(c[0], 2, c.dims(), c.keepdim()); }},
      {"argmax", [](const Call& c) { return argmax(c[0], c.only_dim(), c.keepdim()); }},
      {"argmin", [](const Call& c) { return argmin(c[0], c.only_dim(), c.keepdim()); }},
  };
}

std::map<std::string, Function> shapes() {
  return {
      {"reshape", [](const Call& c) { return reshape(c[0], {-1}); }},
      {"transpose", [](const Call& c) { return transpose(c[0], 0, -1); }},
      {"unsqueeze", [](const Call& c) { return unsqueeze(c[0], c.dim()); }},
      {"squeeze",
       [](const Call& c) { return c.args.empty() ? squeeze(c[0]) : squeeze(c[0], c.dim()); }},
      {"flatten", [](const Call& c) { return flatten(c[0]); }},
      {"flip", [](const Call& c) { return flip(c[0], {c.dim()}); }},
      {"roll", [](const Call& c) { return roll(c[0], 2, c.dim()); }},
      {"tril", [](const Call& c) { return tril(c[0]); }},
      {"triu", [](const Call& c) { return triu(c[0]); }},
      {"slice", [](const Call& c) { return slice(c[0], 0, 1, c.rows(), 2); }},
      {"narrow", [](const Call& c) { return narrow(c[0], 0, full({}, 1, DType::i32), 1); }},
      {"cat",
       [](const Call& c) {
         return cat({c[0], c[0]}, -1);
       }},
      {"stack",
       [](const Call& c) {
         return stack({c[0], c[0]});
       }},
      {"split", [](const Call& c) { return split(c[0], 2, -1).back(); }},
      {"chunk", [](const Call& c) { return chunk(c[0], 2)[0]; }},
      {"repeat",
       [](const Call& c) {
         const auto dims = std::max<std::size_t>(1, static_cast<std::size_t>(c[0].shape().size()));
         return repeat(c[0], std::vector<std::int64_t>(dims, 2));
       }},
      {"broadcast_to",
       [](const Call& c) {
         std::vector<std::int64_t> sizes{2};
         sizes.insert(sizes.end(), c[0].shape().begin(), c[0].shape().end());
         return broadcast_to(c[0], Shape(sizes));
       }},
      {"pad",
       [](const Call& c) {
         std::vector<std::array<std::int64_t, 2>> widths(
             static_cast<std::size_t>(c[0].shape().size()));
         widths.back() = {1, 2};
         return pad(c[0], widths);
       }},
  };
}

std::map<std::string, Function> others() {
  return {
      {"softmax", [](const Call& c) { return softmax(c[0], c.dim()); }},
      {"log_softmax", [](const Call& c) { return log_softmax(c[0], c.dim()); }},
      {"cumsum", [](const Call& c) { return cumsum(c[0], c.dim()); }},
      {"cumprod", [](const Call& c) { return cumprod(c[0], c.dim()); }},
      {"sort", [](const Call& c) { return sort(c[0], c.dim()).values; }},
      {"argsort", [](const Call& c) { return argsort(c[0], c.dim()); }},
      {"topk", [](const Call& c) { return topk(c[0], 1, c.dim()).values; }},
      {"gather", [](const Call& c) { return gather(c[0], 0, c[1]); }},
      {"scatter_add", [](const Call& c) { return scatter_add(c[0], 0, c[1], c[2]); }},
      {"index_select", [](const Call& c) { return index_select(c[0], 0, c[1]); }},
      {"one_hot", [](const Call& c) { return one_hot(c[0], 4, DType::i32); }},
      {"embedding", [](const Call& c) { return embedding(c[0], c[1]); }},
      {"matmul", of_two(matmul)},
      {"linear", [](const Call& c) { return linear(c[0], transpose(c[1], 0, 1), {}); }},
      {"einsum",
       [](const Call& c) {
         return einsum("ij,jk->ki", {c[0], c[1]});
       }},
      {"conv2d", [](const Call& c) { return conv2d(c[0], c[1]); }},
      {"conv_transpose2d", [](const Call& c) { return conv_transpose2d(c[0], c[1]); }},
      {"avg_pool2d", [](const Call& c) { return avg_pool2d(c[0], {.kernel_size = 2}); }},
      {"max_pool2d", [](const Call& c) { return max_pool2d(c[0], {.kernel_size = 2}); }},
      {"adaptive_avg_pool2d", [](const Call& c) { return adaptive_avg_pool2d(c[0], 3); }},
      {"interpolate", [](const Call& c) { return interpolate(c[0], {.scale_factor = {2}}); }},
      {"interpolate_linear",
       [](const Call& c) {
         return interpolate(c[0], {.size = {3, 5}, .mode = Interpolation::linear});
       }},
  };
}

/// Returns the functions that only samples of edges.py use.
std::map<std::string, Function> of_edges() {
  return {
      {"square", of_one(square)},
      {"gelu_tanh", [](const Call& c) { return gelu(c[0], Gelu::tanh); }},
      {"pow_number", [](const Call& c) { return pow(c[0], *c.number("p")); }},
      {"clamp_below", [](const Call& c) { return clamp(c[0], c[1], {}); }},
      {"clamp_above", [](const Call& c) { return clamp(c[0], {}, c[1]); }},
      {"floor_divide", of_two(floor_divide)},
      {"floor_divide_number", [](const Call& c) { return floor_divide(c[0], *c.number("by")); }},
      {"remainder_number", [](const Call& c) { return remainder(c[0], *c.number("by")); }},
      {"remainder_value", [](const Call& c) { return stop_gradient(remainder(c[0], c[1])); }},
      {"fmod_value", [](const Call& c) { return stop_gradient(fmod(c[0], c[1])); }},
      {"cumprod_value", [](const Call& c) { return stop_gradient(cumprod(c[0], c.dim())); }},
      {"norm_p",
       [](const Call& c) {
         const Json& p = c.args.at("p");
         return norm(c[0], p.is_string() ? kInfinity : p.get<double>());
       }},
      {"mse_loss", [](const Call& c) { return mse_loss(c[0], c[1]); }},
      {"l1_loss", [](const Call& c) { return l1_loss(c[0], c[1]); }},
      {"smooth_l1_loss", [](const Call& c) { return smooth_l1_loss(c[0], c[1]); }},
      {"huber_loss", [](const Call& c) { return huber_loss(c[0], c[1]); }},
      {"mse_loss_sum", [](const Call& c) { return mse_loss(c[0], c[1], {.reduction = kSum}); }},
      {"l1_loss_sum", [](const Call& c) { return l1_loss(c[0], c[1], {.reduction = kSum}); }},
      {"smooth_l1_loss_sum",
       [](const Call& c) { return smooth_l1_loss(c[0], c[1], {.reduction = kSum}); }},
      {"huber_loss_sum", [](const Call& c) { return huber_loss(c[0], c[1], {.reduction = kSum}); }},
      {"bce_logits_sum",
       [](const Call& c) {
         return binary_cross_entropy_with_logits(c[0], stop_gradient(c[1]), {.reduction = kSum});
       }},
      {"avg_pool_64", [](const Call& c) { return avg_pool2d(c[0], {.kernel_size = 64}); }},
      {"adaptive_avg_pool_1", [](const Call& c) { return adaptive_avg_pool2d(c[0], 1); }},
      {"max_pool2d_padded",
       [](const Call& c) {
         return max_pool2d(c[0], {.kernel_size = 3, .stride = 2, .padding = 1});
       }},
      {"normalize", [](const Call& c) { return normalize(c[0]); }},
  };
}

const std::map<std::string, Function>& functions() {
  static const std::map<std::string, Function> all = [] {
    auto table = elementwise();
    table.merge(reductions());
    table.merge(shapes());
    table.merge(others());
    table.merge(of_edges());
    return table;
  }();
  return all;
}

// The functions below build the tensors of samples.

struct Elements {
  TensorType type;
  Numbers numbers;
};

Elements elements_of(const Json& entry) {
  Elements result;
  const auto sizes = entry.at("shape").get<std::vector<std::int64_t>>();
  result.type = {parse_dtype(entry.at("dtype").get<std::string>()), Shape(sizes)};
  for (const Json& number : entry.at("elements")) {
    result.numbers.push_back(number.is_string()
                                 ? std::strtod(number.get<std::string>().c_str(), nullptr)
                                 : number.get<double>());
  }
  // If numbers repeat, edges.py stores only one period of them.
  const auto count = static_cast<std::size_t>(result.type.num_elements());
  const std::size_t period = result.numbers.size();
  while (result.numbers.size() < count) {
    result.numbers.push_back(result.numbers[result.numbers.size() - period]);
  }
  return result;
}

Tensor tensor_of(const Elements& elements) {
  const TensorType& type = elements.type;
  if (type.num_elements() == 0) return full(type.shape, 0, type.dtype);
  std::vector<std::byte> bytes(static_cast<std::size_t>(type.bytes()));
  for (std::size_t i = 0; i < elements.numbers.size(); ++i) {
    store_element(type.dtype, elements.numbers[i],
                  bytes.data() + i * static_cast<std::size_t>(byte_size(type.dtype)));
  }
  return to_device(ConstElementSpan(type.dtype, bytes.data(), type.num_elements()), type.shape);
}

Tensor view_of(const std::string& kind, const Tensor& base) {
  const Shape& shape = base.shape();
  if (kind.empty() || shape.size() == 0 || base.num_elements() == 0) return base;
  if (kind == "transposed") return transpose(base, 0, -1);
  return slice(base, -1, 0, shape[shape.size() - 1], 2);
}

Numbers numbers_of(const Tensor& tensor) {
  const std::vector<std::byte> bytes = tensor.to_bytes();
  const DType dtype = tensor.type().dtype;
  const auto size = static_cast<std::size_t>(byte_size(dtype));
  Numbers numbers;
  for (std::size_t i = 0; i < bytes.size(); i += size) {
    numbers.push_back(load_element(dtype, bytes.data() + i));
  }
  return numbers;
}

/// Returns whether the types are equal; weft may have i32 where torch has i64 for counts and
/// indices.
bool is_like(const TensorType& actual, const TensorType& torch) {
  return actual.shape == torch.shape &&
         (actual.dtype == torch.dtype || (actual.dtype == DType::i32 && torch.dtype == DType::i64));
}

double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return 1e-12;
    case DType::f32: return 2e-5;
    case DType::bf16: return 4e-2;
    case DType::f16: return 5e-3;
    default: return 0;
  }
}

/// Returns how two tensors differ, or "".
std::string difference(const std::string& what, const Tensor& actual, const Elements& torch) {
  if (!is_like(actual.type(), torch.type)) {
    return fmt::format("{} is {}, and torch's {}", what, actual.type().to_string(),
                       torch.type.to_string());
  }
  const Numbers numbers = numbers_of(actual);
  const double tolerance = tolerance_of(torch.type.dtype);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double a = numbers[i];
    const double b = torch.numbers[i];
    const bool agrees = a == b || (std::isnan(a) && std::isnan(b)) ||
                        std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b));
    if (!agrees) return fmt::format("{} differs: {}, and torch {}", what, numbers, torch.numbers);
  }
  return "";
}

}  // namespace

std::vector<Json> torch_samples(const std::string& name) {
  const std::filesystem::path path = golden_path("torch/" + name);
  std::vector<std::filesystem::path> files{path};
  if (std::filesystem::is_directory(path)) {
    files.assign(std::filesystem::directory_iterator(path), {});
    std::ranges::sort(files);
  }
  std::vector<Json> samples;
  for (const std::filesystem::path& each : files) {
    std::ifstream file(each);
    for (std::string line; std::getline(file, line);) samples.push_back(Json::parse(line));
  }
  return samples;
}

std::string disagreement(const Json& sample) {
  try {
    const Function& function = functions().at(sample.at("op"));
    std::vector<Tensor> floating;
    Call call{{}, sample.at("args")};
    for (const Json& operand : sample.at("operands")) {
      const Tensor base = tensor_of(elements_of(operand));
      if (is_floating(base.type().dtype)) floating.push_back(base);
      call.x.push_back(view_of(sample.at("view"), base));
    }
    const Tensor y = function(call);
    std::vector<Tensor> gradients;
    const bool has_gradients = sample.contains("gradients") && is_floating(y.type().dtype);
    if (has_gradients) {
      gradients =
          vjp(std::array{y}, std::array{tensor_of(elements_of(sample.at("weight")))}, floating);
    }
    std::string found = difference("the value", y, elements_of(sample.at("y")));
    for (std::size_t i = 0; found.empty() && i < gradients.size(); ++i) {
      found = difference("the gradient", gradients[i], elements_of(sample["gradients"][i]));
    }
    return found;
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace weft::testing
