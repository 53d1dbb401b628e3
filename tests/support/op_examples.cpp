#include "tests/support/op_examples.hpp"

#include <fmt/format.h>

namespace weft::testing {
namespace {

/// Returns one open entry for each dim of a type: "{?}, {?}" for "f32[2,3]".
std::string open_dims(std::string_view type) {
  const std::string_view dims = type.substr(type.find('['));
  if (dims == "[]") return "";
  std::string open = "{?}";
  for (const char c : dims) {
    if (c == ',') open += ", {?}";
  }
  return open;
}

std::string retyped(std::string text, std::string_view dtype) {
  for (std::size_t at = 0; (at = text.find("f32", at)) != std::string::npos; at += dtype.size()) {
    text.replace(at, 3, dtype);
  }
  return text;
}

}  // namespace

const std::vector<OpExample>& op_examples() {
  using enum OpKind;
  static constexpr std::string_view kMatrix = "f32[6,8]";
  static const std::vector<OpExample> kExamples{
      {constant, {}, "%0 = constant {values = [1, 0, 1]} : f32[3]"},
      {iota, {}, "%0 = iota {dim = 1} : f32[6,8]"},
      {rng_bit_generator, {"u32[4]"}, "%1 = rng_bit_generator %0 {atoms = [{}, {}]} : u32[6,8]"},
      {negate, {kMatrix}, "%1 = negate %0 : f32[6,8]"},
      {sign, {kMatrix}, "%1 = sign %0 : f32[6,8]"},
      {abs, {kMatrix}, "%1 = abs %0 : f32[6,8]"},
      {exponential, {kMatrix}, "%1 = exponential %0 : f32[6,8]"},
      {log, {kMatrix}, "%1 = log %0 : f32[6,8]"},
      {tanh, {kMatrix}, "%1 = tanh %0 : f32[6,8]"},
      {logistic, {kMatrix}, "%1 = logistic %0 : f32[6,8]"},
      {sqrt, {kMatrix}, "%1 = sqrt %0 : f32[6,8]"},
      {rsqrt, {kMatrix}, "%1 = rsqrt %0 : f32[6,8]"},
      {convert, {kMatrix}, "%1 = convert %0 : f64[6,8]"},
      {sine, {kMatrix}, "%1 = sine %0 : f32[6,8]"},
      {cosine, {kMatrix}, "%1 = cosine %0 : f32[6,8]"},
      {is_finite, {kMatrix}, "%1 = is_finite %0 : pred[6,8]"},
      {softplus, {kMatrix}, "%1 = softplus %0 : f32[6,8]"},
      {floor, {kMatrix}, "%1 = floor %0 : f32[6,8]"},
      {ceil, {kMatrix}, "%1 = ceil %0 : f32[6,8]"},
      {round_nearest_even, {kMatrix}, "%1 = round_nearest_even %0 : f32[6,8]"},
      {log_plus_one, {kMatrix}, "%1 = log_plus_one %0 : f32[6,8]"},
      {exponential_minus_one, {kMatrix}, "%1 = exponential_minus_one %0 : f32[6,8]"},
      {erf, {kMatrix}, "%1 = erf %0 : f32[6,8]"},
      {tan, {kMatrix}, "%1 = tan %0 : f32[6,8]"},
      {remainder, {kMatrix, kMatrix}, "%2 = remainder %0, %1 : f32[6,8]"},
      {atan2, {kMatrix, kMatrix}, "%2 = atan2 %0, %1 : f32[6,8]"},
      {add, {kMatrix, kMatrix}, "%2 = add %0, %1 : f32[6,8]"},
      {subtract, {kMatrix, kMatrix}, "%2 = subtract %0, %1 : f32[6,8]"},
      {multiply, {kMatrix, kMatrix}, "%2 = multiply %0, %1 : f32[6,8]"},
      {divide, {kMatrix, kMatrix}, "%2 = divide %0, %1 : f32[6,8]"},
      {maximum, {kMatrix, kMatrix}, "%2 = maximum %0, %1 : f32[6,8]"},
      {minimum, {kMatrix, kMatrix}, "%2 = minimum %0, %1 : f32[6,8]"},
      {power, {kMatrix, kMatrix}, "%2 = power %0, %1 : f32[6,8]"},
      {compare, {kMatrix, kMatrix}, "%2 = compare %0, %1 {direction = lt} : pred[6,8]"},
      {logical_and, {"pred[6,8]", "pred[6,8]"}, "%2 = logical_and %0, %1 : pred[6,8]"},
      {logical_or, {"pred[6,8]", "pred[6,8]"}, "%2 = logical_or %0, %1 : pred[6,8]"},
      {logical_xor, {"pred[6,8]", "pred[6,8]"}, "%2 = logical_xor %0, %1 : pred[6,8]"},
      {logical_not, {"pred[6,8]"}, "%1 = logical_not %0 : pred[6,8]"},
      {select, {"pred[6,8]", kMatrix, kMatrix}, "%3 = select %0, %1, %2 : f32[6,8]"},
      {reshape, {kMatrix}, "%1 = reshape %0 : f32[6,2,4]"},
      {transpose, {kMatrix}, "%1 = transpose %0 {perm = [1, 0]} : f32[8,6]"},
      {broadcast_in_dim, {"f32[8]"}, "%1 = broadcast_in_dim %0 {dims = [1]} : f32[6,8]"},
      {slice,
       {kMatrix},
       "%1 = slice %0 {start = [1, 0], limit = [6, 8], stride = [2, 1]} : f32[3,8]"},
      {pad,
       {kMatrix, "f32[]"},
       "%2 = pad %0, %1 {low = [1, 0], high = [0, 2], interior = [1, 0]} : f32[12,10]"},
      {concatenate, {kMatrix, kMatrix}, "%2 = concatenate %0, %1 {dim = 0} : f32[12,8]"},
      {reverse, {kMatrix}, "%1 = reverse %0 {dims = [1]} : f32[6,8]"},
      {dot_general,
       {kMatrix, "f32[4,8]"},
       "%2 = dot_general %0, %1 {contracting = [1] x [1]} : f32[6,4]"},
      {.kind = dot_general,
       .inputs = {kMatrix, "f32[4,8]"},
       .body = "%2 = dot_general %0, %1 {contracting = [1] x [1], skip_zeros = [0]} : f32[6,4]",
       .variant = "skip_zeros"},
      {reduce, {kMatrix}, "%1 = reduce %0 {kind = add, dims = [1]} : f32[6]"},
      {convolution,
       {"f32[4,2,6,6]", "f32[4,2,3,3]"},
       "%2 = convolution %0, %1 {lhs = [0, 1, 2, 3], rhs = [1, 0, 2, 3], result = [0, 1, 2, 3], "
       "stride = [1, 2], low = [1, 0], high = [1, 1], lhs_dilation = [1, 1], "
       "rhs_dilation = [1, 1], reversed = 0} : f32[4,4,6,3]"},
      {reduce_window,
       {"f32[4,2,6,6]"},
       "%1 = reduce_window %0 {kind = add, size = [1, 1, 2, 2], stride = [1, 1, 2, 2], "
       "low = [0, 0, 0, 0], high = [0, 0, 0, 0], base_dilation = [1, 1, 1, 1], "
       "dilation = [1, 1, 1, 1]} : f32[4,2,3,3]"},
      {select_and_scatter,
       {"f32[4,2,6,6]", "f32[4,2,3,3]"},
       "%2 = select_and_scatter %0, %1 {kind = max, size = [1, 1, 2, 2], stride = [1, 1, 2, 2], "
       "low = [0, 0, 0, 0], high = [0, 0, 0, 0], base_dilation = [1, 1, 1, 1], "
       "dilation = [1, 1, 1, 1]} : f32[4,2,6,6]"},
      {gather, {kMatrix, "i32[4]"}, "%2 = gather %0, %1 {atoms = {}} : f32[4,8]"},
      {scatter, {"i32[4]", "f32[4,8]"}, "%2 = scatter %0, %1 {rows = 6, atoms = {}} : f32[6,8]"},
      {dynamic_slice,
       {kMatrix, "i32[]", "i32[]"},
       "%3 = dynamic_slice %0, %1, %2 {sizes = [3, 8]} : f32[3,8]"},
      {dynamic_update_slice,
       {kMatrix, "f32[3,8]", "i32[]", "i32[]"},
       "%4 = dynamic_update_slice %0, %1, %2, %3 : f32[6,8]"},
      {loop,
       {kMatrix},
       "%1 = loop {length = 3} : i32[]\n%2 = convert %1 : f32[]\n"
       "%3 = stack %1, %2 {length = 3} : f32[3]"},
      {carry,
       {kMatrix, kMatrix},
       "%2 = loop {length = 3} : i32[]\n%3 = carry %2, %0 : f32[6,8]\n"
       "%4 = multiply %3, %1 : f32[6,8]\n%5 = stack %2, %3 {length = 3} : f32[3,6,8]\n"
       "%6 = next %2, %3, %4 : f32[6,8]\n%7 = slice %5 {start = [0, 0, 0], limit = [2, 6, 8], "
       "stride = [1, 1, 1]} : f32[2,6,8]"},
      {item,
       {kMatrix, "f32[8,6]"},
       "%2 = loop {length = 6, reversed = 1} : i32[]\n%3 = item %2, %0 : f32[8]\n"
       "%4 = dot_general %3, %1 {contracting = [0] x [0]} : f32[6]\n"
       "%5 = stack %2, %4 {length = 6} : f32[6,6]"},
      {stack,
       {kMatrix, kMatrix},
       "%2 = loop {length = 6} : i32[]\n%3 = item %2, %0 : f32[8]\n%4 = item %2, %1 : f32[8]\n"
       "%5 = multiply %3, %4 : f32[8]\n%6 = loop {length = 2} : i32[]\n"
       "%7 = carry %6, %5 : f32[8]\n%8 = logistic %7 : f32[8]\n"
       "%9 = stack %6, %7 {length = 2} : f32[2,8]\n%10 = next %6, %7, %8 : f32[8]\n"
       "%11 = stack %2, %10 {length = 6} : f32[6,8]"},
      {next,
       {kMatrix, kMatrix, "f32[3,8,8]"},
       "%3 = loop {length = 3} : i32[]\n%4 = carry %3, %0 : f32[6,8]\n"
       "%5 = carry %3, %1 : f32[6,8]\n%6 = item %3, %2 : f32[8,8]\n"
       "%7 = dot_general %4, %6 {contracting = [1] x [0]} : f32[6,8]\n"
       "%8 = logistic %7 : f32[6,8]\n%9 = add %8, %5 : f32[6,8]\n"
       "%10 = stack %3, %4 {length = 3} : f32[3,6,8]\n%11 = stack %3, %5 {length = 3} : "
       "f32[3,6,8]\n"
       "%12 = next %3, %5, %4 : f32[6,8]\n%13 = next %3, %4, %9 : f32[6,8]"},
      {test,
       {kMatrix, kMatrix},
       "%2 = loop : i32[]\n%3 = carry %2, %0 : f32[6,8]\n"
       "%4 = constant {value = 3} : i32[]\n%5 = compare %2, %4 {direction = lt} : pred[]\n"
       "%6 = test %2, %5 : pred[]\n%7 = multiply %3, %1 : f32[6,8]\n"
       "%8 = next %2, %3, %7 : f32[6,8]"},
      {cond,
       {kMatrix, kMatrix},
       "%2 = reduce %0 {kind = max, dims = [0, 1]} : f32[]\n"
       "%3 = reduce %1 {kind = min, dims = [0, 1]} : f32[]\n"
       "%4 = compare %2, %3 {direction = ge} : pred[]\n%5 = cond %4 : pred[]\n"
       "%6 = multiply %0, %1 : f32[6,8]\n%7 = otherwise %5 : pred[]\n"
       "%8 = merge %5, %6, %1 : f32[6,8]"},
      {otherwise,
       {kMatrix, kMatrix},
       "%2 = reduce %0 {kind = max, dims = [0, 1]} : f32[]\n"
       "%3 = reduce %1 {kind = min, dims = [0, 1]} : f32[]\n"
       "%4 = compare %2, %3 {direction = lt} : pred[]\n%5 = cond %4 : pred[]\n"
       "%6 = otherwise %5 : pred[]\n%7 = multiply %0, %1 : f32[6,8]\n"
       "%8 = logistic %7 : f32[6,8]\n%9 = merge %5, %1, %8 : f32[6,8]"},
      {merge,
       {kMatrix, "f32[6,8,8]"},
       "%2 = loop {length = 6} : i32[]\n%3 = item %2, %0 : f32[8]\n%4 = item %2, %1 : f32[8,8]\n"
       "%5 = constant {value = 2} : i32[]\n%6 = compare %2, %5 {direction = lt} : pred[]\n"
       "%7 = cond %6 : pred[]\n%8 = logistic %3 : f32[8]\n"
       "%9 = dot_general %8, %4 {contracting = [0] x [0]} : f32[8]\n%10 = multiply %9, %3 : "
       "f32[8]\n"
       "%11 = otherwise %7 : pred[]\n%12 = loop {length = 2} : i32[]\n"
       "%13 = carry %12, %3 : f32[8]\n%14 = logistic %13 : f32[8]\n"
       "%15 = stack %12, %13 {length = 2} : f32[2,8]\n%16 = next %12, %13, %14 : f32[8]\n"
       "%17 = merge %7, %10, %16 : f32[8]\n%18 = merge %7, %3, %16 : f32[8]\n"
       "%19 = multiply %17, %18 : f32[8]\n%20 = stack %2, %19 {length = 6} : f32[6,8]"},
      {argsort, {kMatrix}, "%1 = argsort %0 {descending = 1} : i32[6,8]"},
      {.kind = argsort,
       .inputs = {kMatrix, "i32[6,4]"},
       .body = "%2 = argsort %0, %1 {descending = 0} : i32[6,4]",
       .variant = "places"},
      {take_along, {kMatrix, "i32[6,4]"}, "%2 = take_along %0, %1 : f32[6,4]"},
      {scatter_along, {"i32[6,4]", "f32[6,4]"}, "%2 = scatter_along %0, %1 {size = 8} : f32[6,8]"},
      {linear_recurrence,
       {kMatrix, kMatrix},
       "%2 = linear_recurrence %0, %1 {reversed = 0} : f32[6,8]"},
      {sharding_constraint,
       {kMatrix},
       "%1 = sharding_constraint %0 {sharding = [{\"data\"}, {?}]} : f32[6,8]"},
      {copy, {kMatrix}, "%1 = copy %0 : f32[6,8]"},
      {optimization_barrier, {kMatrix}, "%1 = optimization_barrier %0 : f32[6,8]"},
      {custom_call,
       {kMatrix, "f32[8]"},
       "%2 = custom_call %0, %1 {target = \"affine2\", rule = \"a s, s -> a s\"} : f32[6,8]"},
      {check_index, {"i32[4]"}, "%1 = check_index %0 {limit_ignored = [6, -100]} : i32[4]"},
      {stop_gradient, {kMatrix}, "%1 = stop_gradient %0 : f32[6,8]"},
      {custom_gradient,
       {kMatrix, "f32[8]"},
       "%2 = custom_gradient %0, %1 {function = 0} : f32[6,8]"},
      {all_reduce,
       {"f32[3,8]"},
       "%1 = all_reduce %0 {atoms = {\"data\"}, kind = add} : f32[3,8]",
       "{\"data\"}, {}",
       "{}, {}"},
      {all_gather,
       {"f32[3,8]"},
       "%1 = all_gather %0 {atoms = {\"data\"}, dim = 0} : f32[6,8]",
       "{\"data\"}, {}",
       "{}, {}"},
      {reduce_scatter,
       {"f32[6,8]"},
       "%1 = reduce_scatter %0 {atoms = {\"data\"}, kind = add, dim = 0} : f32[3,8]",
       "{}, {}",
       "{\"data\"}, {}"},
      {all_to_all,
       {"f32[6,4]"},
       "%1 = all_to_all %0 {atoms = {\"data\"}, split = 0, concat = 1} : f32[3,8]",
       "{}, {\"data\"}",
       "{\"data\"}, {}"},
      {collective_permute,
       {"f32[3,8]"},
       "%1 = collective_permute %0 {from = [{\"data\"}, {}], to = [{\"model\"}, {}]} : f32[3,8]",
       "{\"data\"}, {}",
       "{\"model\"}, {}"},
      {ppermute,
       {"f32[3,8]"},
       "%1 = ppermute %0 {atoms = {\"data\"}, sources = [1, 0]} : f32[3,8]",
       "{\"data\"}, {}",
       "{\"data\"}, {}"},
      {enter,
       {kMatrix},
       "%1 = enter %0 {manual = {\"data\"}, dims = [{}, {}]} : f32[6,8]\n"
       "%2 = multiply %1, %1 : f32[6,8]\n"
       "%3 = leave %2 {manual = {\"data\"}, dims = [{}, {}]} : f32[6,8]"},
      {leave,
       {kMatrix},
       "%1 = enter %0 {manual = {\"data\"}, dims = [{}, {}]} : f32[6,8]\n"
       "%2 = transpose %1 {perm = [1, 0]} : f32[8,6]\n"
       "%3 = leave %2 {manual = {\"data\"}, dims = [{}, {}]} : f32[8,6]"},
      {vary,
       {kMatrix},
       "%1 = enter %0 {manual = {\"data\"}, dims = [{}, {}]} : f32[6,8]\n"
       "%2 = vary %1 {atoms = {\"data\"}} : f32[6,8]\n"
       "%3 = all_reduce %2 {atoms = {\"data\"}, kind = max} : f32[6,8]\n"
       "%4 = leave %3 {manual = {\"data\"}, dims = [{}, {}]} : f32[6,8]"},
      {all_slice,
       {"f32[6,8]"},
       "%1 = all_slice %0 {atoms = {\"data\"}, dim = 0} : f32[3,8]",
       "{}, {}",
       "{\"data\"}, {}"},
      {softmax, {kMatrix}, "%1 = softmax %0 : f32[6,8]"},
      {softmax_grad,
       {kMatrix, kMatrix},
       "%2 = softmax %0 : f32[6,8]\n%3 = softmax_grad %2, %1 : f32[6,8]"},
      {log_softmax, {kMatrix}, "%1 = log_softmax %0 : f32[6,8]"},
      {log_softmax_grad,
       {kMatrix, kMatrix},
       "%2 = log_softmax %0 : f32[6,8]\n%3 = log_softmax_grad %2, %1 : f32[6,8]"},
      {normalize, {kMatrix}, "%1 = normalize %0 {center = 1, eps = 0.1} : f32[6,8]"},
      {normalize_grad,
       {kMatrix, kMatrix},
       "%2 = normalize_grad %0, %1 {center = 1, eps = 0.1} : f32[6,8]"},
      {attention,
       {"f32[2,2,4,4]", "f32[2,2,6,4]", "f32[2,2,6,4]"},
       "%3 = attention %0, %1, %2 {causal = 1, scale = 0.5, atoms = {}} : f32[2,2,4,4]"},
      {attention_grad,
       {"f32[2,2,4,4]", "f32[2,2,6,4]", "f32[2,2,6,4]", "f32[2,2,4,4]"},
       "%4 = attention %0, %1, %2 {causal = 1, scale = 0.5, atoms = {}} : f32[2,2,4,4]\n"
       "%5 = attention_grad %0, %1, %2, %4, %3 {causal = 1, scale = 0.5} : f32[2,2,16,4]"},
      {attention,
       {"f32[2,2,4,4]", "f32[2,2,6,4]", "f32[2,2,6,4]", "pred[2,1,1,6]"},
       "%4 = attention %0, %1, %2, %3 {causal = 1, scale = 0.5, atoms = {}} : f32[2,2,4,4]",
       "",
       "",
       "mask"},
      {attention,
       {"f32[2,2,4,4]", "f32[2,2,6,4]", "f32[2,2,6,4]", "f32[1,2,4,6]"},
       "%4 = attention %0, %1, %2, %3 {causal = 0, scale = 0.5, atoms = {}} : f32[2,2,4,4]",
       "",
       "",
       "bias"},
      {attention_grad,
       {"f32[2,2,4,4]", "f32[2,2,6,4]", "f32[2,2,6,4]", "f32[2,2,4,4]", "pred[1,1,4,6]"},
       "%5 = attention %0, %1, %2, %4 {causal = 0, scale = 0.5, atoms = {}} : f32[2,2,4,4]\n"
       "%6 = attention_grad %0, %1, %2, %5, %3, %4 {causal = 0, scale = 0.5} : f32[2,2,16,4]",
       "",
       "",
       "mask"},
      {attention_grad,
       {"f32[2,2,4,4]", "f32[2,2,6,4]", "f32[2,2,6,4]", "f32[2,2,4,4]", "f32[2,1,4,6]"},
       "%5 = attention %0, %1, %2, %4 {causal = 1, scale = 0.5, atoms = {}} : f32[2,2,4,4]\n"
       "%6 = attention_grad %0, %1, %2, %5, %3, %4 {causal = 1, scale = 0.5} : f32[2,2,16,4]",
       "",
       "",
       "bias"},
      {cross_entropy, {kMatrix, "i32[6]"}, "%2 = cross_entropy %0, %1 : f32[6]"},
      {cross_entropy_grad,
       {kMatrix, "i32[6]"},
       "%2 = cross_entropy %0, %1 : f32[6]\n%3 = cross_entropy_grad %0, %1, %2 : f32[6,8]"},
  };
  return kExamples;
}

std::string text_of(const OpExample& example, std::string_view dtype,
                    const std::vector<std::string>& cuts) {
  std::string inputs;
  for (std::size_t i = 0; i < example.inputs.size(); ++i) {
    std::string cut = cuts.empty() ? open_dims(example.inputs[i]) : cuts[i];
    if (!example.cut_input.empty()) cut = example.cut_input;
    inputs += fmt::format("{}%{}: {} data \"x{}\" [{}]", i == 0 ? "" : ",\n", i, example.inputs[i],
                          i, cut);
  }
  const std::string_view last = example.body.substr(example.body.rfind('\n') + 1);
  const std::string_view result = last.substr(0, last.find(' '));
  const std::string_view type = last.substr(last.rfind(": ") + 2);
  const std::string cut =
      example.cut_result.empty() ? open_dims(type) : std::string(example.cut_result);
  return retyped(fmt::format("program({}) {{\n{}\nreturn {} \"y\" [{}]\n}}", inputs, example.body,
                             result, cut),
                 dtype);
}

}  // namespace weft::testing
