#include "chips/cpu/kernels/anomaly.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <weft/tensor/error.hpp>

#include "chips/cpu/loops/element.hpp"
#include "spmd/ops/row.hpp"

namespace weft::kernels {
namespace {

/// The index of a tensor's first NaN, and the index of its first infinity if that comes before the
/// NaN.
struct Anomaly {
  std::optional<std::int64_t> nan;
  std::optional<std::int64_t> infinity;
};

Anomaly find_anomaly(DType dtype, const std::byte* bytes, std::int64_t count) {
  return visit_dtype(dtype, [&]<typename T>(std::type_identity<T>) {
    Anomaly found;
    if constexpr (kIsFloating<T>) {
      const T* elements = as<T>(bytes);
      for (std::int64_t i = 0; i < count; ++i) {
        const auto element = load(elements[i]);
        if (std::isfinite(element)) continue;
        if (!std::isnan(element)) {
          if (!found.infinity) found.infinity = i;
          continue;
        }
        found.nan = i;
        break;
      }
    }
    return found;
  });
}

/// Searches an op's operands and result for NaN and infinity, and throws if the op reads or makes
/// one.
class Looker {
 public:
  Looker(const Program& program, OpId op)
      : result_{"", program.type(program.result(op))},
        name_(to_string(program.kind(op))),
        loc_(program.loc(op)) {
    for (const ValueId value : program.op_operands(op)) {
      operands_.push_back({origin_of(program, value), program.type(value)});
    }
  }

  bool applies() const { return is_floating(result_.type.dtype) && !operands_.empty(); }

  /// Returns the anomalies of the operands. Must be called before the op runs, because the op may
  /// overwrite its operands.
  Anomaly look_at_operands(const KernelArgs& args) const {
    Anomaly all;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const Anomaly found = find(operands_[i], args.operands[i], args.count_max);
      if (found.nan && !operands_[i].origin.empty()) {
        fail(Errc::invalid_argument, "detect_anomaly: {} reads {}, which has a nan{}", name_,
             operands_[i].origin, at());
      }
      if (found.nan) all.nan = found.nan;
      if (found.infinity) all.infinity = found.infinity;
    }
    return all;
  }

  void look_at_result(const KernelArgs& args, const Anomaly& before) const {
    const Anomaly found = find(result_, args.result, args.count_max);
    const bool is_nan = found.nan && !before.nan;
    const bool is_infinity = found.infinity && !before.infinity && !before.nan;
    if (!is_nan && !is_infinity) return;
    fail(Errc::invalid_argument,
         "detect_anomaly: {} computes {} in {}, and its operands {}; check the values of its "
         "operands{}",
         name_, is_nan ? "a nan" : "an infinity", result_.type.to_string(),
         before.infinity ? "have infinities but no nan" : "are finite", at());
  }

 private:
  struct Tensor {
    std::string origin;  ///< where values come from that no kernel of the plan computes; else ""
    TensorType type;
  };

  static std::string origin_of(const Program& program, ValueId value) {
    const OpId op = program.defining_op(value);
    if (op != kNoId) {
      return is_collective(program.kind(op))
                 ? fmt::format("what {} gives", to_string(program.kind(op)))
                 : "";
    }
    const auto input = std::ranges::find(program.inputs, value, &ProgramInput::value);
    const std::string& loc = program.locs[input->loc];
    return fmt::format("'{}'{}", input->name, loc.empty() ? "" : " of " + loc);
  }

  Anomaly find(const Tensor& tensor, const std::byte* bytes, std::int64_t count_max) const {
    return find_anomaly(tensor.type.dtype, bytes, std::min(tensor.type.num_elements(), count_max));
  }
  std::string at() const { return loc_.empty() ? "" : " (at " + loc_ + ")"; }

  Tensor result_;
  std::vector<Tensor> operands_;
  std::string_view name_;
  std::string loc_;
};

}  // namespace

Kernel checked(Kernel kernel, const Program& program, OpId op) {
  Looker looker(program, op);
  if (!looker.applies()) return kernel;
  return {[run = std::move(kernel.run), looker = std::move(looker)](const KernelArgs& args) {
            const Anomaly before = looker.look_at_operands(args);
            run(args);
            looker.look_at_result(args, before);
          },
          kernel.scratch_bytes};
}

}  // namespace weft::kernels
