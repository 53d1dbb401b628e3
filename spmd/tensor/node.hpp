#pragma once
/// TensorNode: the state that all Tensor handles of one tensor share. Only the files of this folder
/// use it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <weft/tensor/tensor.hpp>

#include "spmd/program/program.hpp"
#include "spmd/tensor/runtime.hpp"

namespace weft {

/// The mean that a loss computes, found in its program: factor * sum / count.
struct LossMean {
  std::uint64_t trace = 0;  ///< the trace that has these values
  ValueId loss = kNoId;
  ValueId sum = kNoId;    ///< the sum; kNoId if the count doesn't depend on data
  ValueId count = kNoId;  ///< number of elements that count, such as labels that aren't ignored
  double factor = 1;
  double elements = 0;  ///< number of all elements, counted or not; 0: unknown
  /// Source line of the division by a data-dependent count, if more ops follow it; else "".
  std::string divided_at{};
  Tensor kept_count{};  ///< tensor of the count, so that later programs can read it
};
/// Finds the mean of a loss. The result has neither `sum` nor `elements` if the loss isn't a mean.
LossMean loss_mean(const Program& program, ValueId loss, std::uint64_t trace);
/// Returns the op that divides the loss by a count that depends on data; kNoId if there is none.
/// With such an op, the loss of all data isn't the mean of the losses of equal parts.
OpId find_count(const Program& program, ValueId loss);

struct Recording;
struct TensorNode;

/// Describes a gradient: the parameter to which it belongs, and the mean that the loss computes.
struct GradientOf {
  std::weak_ptr<const TensorNode> parameter;
  bool is_used = true;  ///< whether the loss depends on the parameter
  std::shared_ptr<const LossMean> mean{};
};

/// The value is in `storage`. If `storage` is monostate, the value exists only in the trace
/// numbered `trace`. If a parameter was assigned in that trace, `storage` has its older value.
struct TensorNode {
  TensorType type;
  InputKind kind = InputKind::data;  ///< the tensor's kind as an input of a program
  std::string name;                  ///< full name of a parameter or optimizer state, else empty
  std::variant<std::monostate, HostData, BufferPtr, SourcePtr> storage;
  std::optional<Sharding> marked;      ///< sharding requested before the tensor was on the chips
  Restored kept{};                     ///< value that replaces `storage` at the first use
  std::vector<std::string> aliases{};  ///< names of parameters that were tied to this one
  bool frozen = false;                 ///< a parameter that isn't trained
  bool is_exchanged = false;           ///< exchanged with its average by an AverageScope
  bool has_ignored = false;            ///< labels that may contain kIgnoreIndex
  bool was_assigned = false;           ///< assign(), not step(), made the value, so gradients flow
  std::source_location loc{};          ///< the call that put it on the chips; line 0: unknown

  /// If reading a tensor made a run compute this value: the run's recording, and the value's number
  /// in it. Null otherwise, and once the value is recorded again.
  std::shared_ptr<Recording> origin{};
  ValueId origin_value = kNoId;

  /// Set for a gradient from grad(), and for values that weft computed from it for the same
  /// parameter.
  std::shared_ptr<const GradientOf> gradient{};

  /// For a recorded value: the call that recorded it, and that call's thread (gettid).
  std::source_location recorded{};
  int thread = 0;

  std::uint64_t trace = 0;      ///< the trace in which the next three fields are valid
  ValueId value = kNoId;        ///< its current value
  ValueId stored = kNoId;       ///< the value that is in `storage`
  std::uint32_t input = kNoId;  ///< number of the program input that is the tensor, if any

  bool is_state() const { return weft::is_state(kind); }
  /// Returns whether the tensor was never on the chips, so that it has no layout yet.
  bool is_off_chips() const {
    return std::holds_alternative<HostData>(storage) || std::holds_alternative<SourcePtr>(storage);
  }
  /// Returns whether the tensor consists of this worker's own rows and was never on the chips.
  bool is_local() const {
    const auto* source = std::get_if<SourcePtr>(&storage);
    return source != nullptr && (*source)->local() != nullptr;
  }
  /// Returns whether this is state that still has its initial value or a value from a file, which a
  /// value kept from an interrupted training loop may replace.
  bool may_be_kept() const { return is_state() && is_off_chips(); }
  /// Returns the sharding that a program requests for this input. A tensor on the chips requests
  /// its present layout, closed. Any other tensor requests the marked sharding or, if it isn't
  /// marked, an open sharding, which propagation completes.
  Sharding input_sharding() const;
  /// Returns "'fc1.weight' f32[128,64]", or the type alone.
  std::string label() const;
};
using NodePtr = std::shared_ptr<TensorNode>;

/// Returns the node's stored value as an input for a run.
Binding binding_of(const TensorNode& node);

/// Returns whether the value is the initial value that the training loop gave the state.
bool is_first_value(const Binding& value);

/// Returns a node with these elements in host memory. `elements` must have as many bytes as the
/// type.
NodePtr host_node(const TensorType& type, InputKind kind, std::string name,
                  std::span<const std::byte> elements, const std::source_location& loc = {});

/// Returns a node with the elements of the source.
NodePtr source_node(const TensorType& type, InputKind kind, std::string name, SourcePtr source);

/// Returns a node of data that is already on the chips.
NodePtr data_node(BufferPtr buffer, const std::source_location& loc);

/// Returns for example "train.cpp:41".
std::string file_line(const std::source_location& loc);

/// Throws invalid_argument for a handle without a value; the message has `loc` if it is known.
[[noreturn]] void fail_undefined(const std::optional<std::source_location>& loc);
const NodePtr& node_of(const Tensor& tensor, std::optional<std::source_location> loc = {});

}  // namespace weft
