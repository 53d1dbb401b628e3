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

/// The mean that a loss computes, as its program shows: factor * sum / count.
struct LossMean {
  std::uint64_t trace = 0;  ///< the trace to which the values belong
  ValueId loss = kNoId;
  ValueId sum = kNoId;    ///< kNoId: the count doesn't depend on data
  ValueId count = kNoId;  ///< number of elements that count, such as labels that aren't ignored
  double factor = 1;
  double elements = 0;  ///< number of elements in the mean, counted or not; 0: unknown
  /// The source line that divides by a count of the data, if more ops follow the division; else "".
  std::string divided_at{};
  Tensor kept_count{};  ///< the count's value, kept if the program ends before it is needed
};
/// Finds the mean of a loss. The result has neither `sum` nor `elements` if the loss isn't a mean.
LossMean loss_mean(const Program& program, ValueId loss, std::uint64_t trace);
/// Returns the op that divides the loss by a count that depends on data; kNoId if there is none.
/// With such an op the mean over parts of the data differs from the mean of the parts' losses.
OpId find_count(const Program& program, ValueId loss);

struct Recording;
struct TensorNode;

/// The parameter to which a gradient belongs.
struct GradientOf {
  std::weak_ptr<const TensorNode> parameter;
  bool is_used = true;  ///< whether the loss depends on the parameter
  std::shared_ptr<const LossMean> mean{};
};

/// The value is in `storage`. If `storage` is monostate, the value exists only in the trace
/// numbered `trace`. A parameter that was assigned in that trace has its older value in `storage`.
struct TensorNode {
  TensorType type;
  InputKind kind = InputKind::data;  ///< its kind as an input of a program
  std::string name;                  ///< full name of a parameter or optimizer state, else empty
  std::variant<std::monostate, HostData, BufferPtr, SourcePtr> storage;
  std::optional<Sharding> marked;      ///< sharding requested before the tensor was on the chips
  Restored kept{};                     ///< value that replaces `storage` at the first use
  std::vector<std::string> aliases{};  ///< names of parameters that were tied to this one
  bool frozen = false;                 ///< a parameter that isn't trained
  bool is_exchanged = false;           ///< a parameter and its average, in an AverageScope
  bool has_ignored = false;            ///< labels, some of which may be kIgnoreIndex
  bool was_assigned = false;           ///< assign(), not step(), made the value, so gradients flow
  std::source_location loc{};          ///< call that brought it to the chips; line 0: unknown

  /// The recording of the run by which a read made this value, and the value's number in it. Null
  /// if no read has made the value, or if the value is recorded again.
  std::shared_ptr<Recording> origin{};
  ValueId origin_value = kNoId;

  /// Set for results of grad(), and for values that weft computed from them for the same parameter.
  std::shared_ptr<const GradientOf> gradient{};

  /// For a recorded value: the call that recorded it, and that call's thread (gettid).
  std::source_location recorded{};
  int thread = 0;

  std::uint64_t trace = 0;      ///< the trace to which the next three belong
  ValueId value = kNoId;        ///< its current value
  ValueId stored = kNoId;       ///< the value that `storage` has
  std::uint32_t input = kNoId;  ///< number of the program input, if the value is one

  bool is_state() const { return weft::is_state(kind); }
  /// Returns whether the value was never on the chips, so that it has no layout yet.
  bool is_off_chips() const {
    return std::holds_alternative<HostData>(storage) || std::holds_alternative<SourcePtr>(storage);
  }
  /// Returns whether the tensor consists of this worker's own rows and was never on the chips.
  bool is_local() const {
    const auto* source = std::get_if<SourcePtr>(&storage);
    return source != nullptr && (*source)->local() != nullptr;
  }
  /// Returns whether this is state whose value is still the initial one, or one from a file. A
  /// value kept from an interrupted training loop may replace it.
  bool may_be_kept() const { return is_state() && is_off_chips(); }
  /// Returns the sharding that a program requests for this input. A tensor on the chips requests
  /// its own layout, closed. Before that it requests the marked sharding, or an open one, which
  /// propagation decides.
  Sharding input_sharding() const;
  /// Returns "'fc1.weight' f32[128,64]", or the type alone.
  std::string label() const;
};
using NodePtr = std::shared_ptr<TensorNode>;

/// Returns the stored value as a program's input.
Binding binding_of(const TensorNode& node);

/// Returns whether this is the initial value that the training loop gave the state.
bool is_first_value(const Binding& value);

/// Returns a node with these elements in host memory. There are as many bytes as the type has.
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
