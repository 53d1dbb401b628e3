#pragma once
/// The templates of compile.hpp: how arguments and results become lists of tensors and back.

#include <typeinfo>

#include <weft/compile.hpp>

namespace weft {

/// The state that copies of a Compiled share: its programs by signature.
class CompiledFunction {
 public:
  CompiledFunction(const CompileOptions& options, const std::source_location& loc);
  ~CompiledFunction();
  CompiledFunction(const CompiledFunction&) = delete;
  CompiledFunction& operator=(const CompiledFunction&) = delete;

  /// The results of `traced` for these arguments. `host_values` are part of the signature.
  std::vector<Tensor> call(const std::vector<Tensor>& args, const std::string& host_values,
                           const std::function<std::vector<Tensor>()>& traced);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

namespace compile_detail {

template <typename T>
concept TensorLike = std::derived_from<T, Tensor>;
template <typename T>
concept TensorList = requires(const T& list) {
  requires TensorLike<typename T::value_type>;
  list.begin();
};

/// Appends the argument to the lists; `host_values` also records the place of tensors.
template <typename T>
void append(const T& value, std::vector<Tensor>& tensors, std::string& host_values) {
  if constexpr (TensorLike<T>) {
    tensors.push_back(value);
    host_values += "tensor;";
  } else if constexpr (TensorList<T>) {
    tensors.insert(tensors.end(), value.begin(), value.end());
    host_values += std::to_string(value.size()) + " tensors;";
  } else if constexpr (std::is_arithmetic_v<T>) {
    // Compared bit for bit: a different number needs a different program.
    static_assert(sizeof(T) <= 8, "compile: a long double has bytes that mean nothing");
    host_values += typeid(T).name();
    host_values.append(reinterpret_cast<const char*>(&value), sizeof(value));
  } else {
    static_assert(std::convertible_to<T, std::string>,
                  "compile: arguments are tensors, vectors of them, numbers and strings");
    const std::string text(value);
    host_values += std::to_string(text.size()) + " letters:" + text;
  }
}

template <typename T>
struct Results;  // compile(): the results as Tensor, tuple or vector of Tensor, or void
template <>
struct Results<Tensor> {
  static std::vector<Tensor> pack(Tensor result) { return {std::move(result)}; }
  static Tensor unpack(std::vector<Tensor> results) { return std::move(results.at(0)); }
};
template <>
struct Results<std::vector<Tensor>> {
  static std::vector<Tensor> pack(std::vector<Tensor> results) { return results; }
  static std::vector<Tensor> unpack(std::vector<Tensor> results) { return results; }
};
template <TensorLike... T>
struct Results<std::tuple<T...>> {
  static std::vector<Tensor> pack(const std::tuple<T...>& results) {
    return std::apply([](const auto&... each) { return std::vector<Tensor>{each...}; }, results);
  }
  static std::tuple<T...> unpack(std::vector<Tensor> results) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::tuple<T...>{results.at(I)...};
    }
    (std::index_sequence_for<T...>{});
  }
};

}  // namespace compile_detail

template <typename Function>
template <typename... Args>
auto Compiled<Function>::operator()(const Args&... args) {
  using Returned = std::invoke_result_t<Function&, const Args&...>;
  std::vector<Tensor> tensors;
  std::string host_values;
  (compile_detail::append(args, tensors, host_values), ...);
  if constexpr (std::is_void_v<Returned>) {
    core_->call(tensors, host_values, [&] {
      function_(args...);
      return std::vector<Tensor>{};
    });
  } else {
    using Results = compile_detail::Results<Returned>;
    return Results::unpack(
        core_->call(tensors, host_values, [&] { return Results::pack(function_(args...)); }));
  }
}

template <typename Function>
Compiled<Function> compile(Function function, const CompileOptions& options,
                           std::source_location loc) {
  return {std::move(function), std::make_shared<CompiledFunction>(options, loc)};
}

template <typename Function, std::same_as<Tensor>... Tensors>
void add_step_closure(Function function, const Operand& first, const Tensors&... others) {
  const std::source_location loc = first.loc();
  add_step_closure(
      std::function<void()>(
          [function = std::move(function), first = first.tensor(), others..., loc]() mutable {
            if constexpr (std::is_invocable_v<Function&, const Tensor&, const Tensors&...>) {
              function(first, others...);
            } else {
              function(first.item(loc), others.item(loc)...);
            }
          }),
      loc);
}

}  // namespace weft
