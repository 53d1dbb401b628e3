#pragma once
/// TensorNode: the shared state of the Tensor handles of one tensor. For the files of this folder.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <weft/tensor.hpp>

#include "spmd/program/program.hpp"
#include "spmd/tensor/runtime.hpp"

namespace weft {

/// What a loss is the mean of, as its program says: factor * sum / count.
struct LossMean {
  std::uint64_t trace = 0;  ///< to which the values belong
  ValueId loss = kNoId;
  ValueId sum = kNoId;    ///< kNoId: the data don't decide the count
  ValueId count = kNoId;  ///< of what counts, as labels that aren't ignored
  double factor = 1;
  double elements = 0;  ///< that the mean is over, counted or not; 0: unknown
  /// The line that divides it by a count of its data, if more is computed after that; else "".
  std::string divided_at{};
  Tensor kept_count{};  ///< the count, where the program ends before it can be asked for
};
/// Throws nothing: a loss of another form has neither sum nor elements.
LossMean loss_mean(const Program& program, ValueId loss, std::uint64_t trace);
/// Where the loss is divided by a count that the data decide: the mean over parts of the data isn't
/// the mean of the parts' losses. kNoId if it isn't.
OpId find_count(const Program& program, ValueId loss);

struct Recording;
struct TensorNode;

/// The parameter to which a gradient belongs.
struct GradientOf {
  std::weak_ptr<const TensorNode> parameter;
  bool is_used = true;  ///< whether the loss depends on the parameter
  std::shared_ptr<const LossMean> mean{};
};

/// The value is in `storage`, or (monostate) only in the trace numbered `trace`. A parameter that
/// was assigned in that trace has its older value in `storage`.
struct TensorNode {
  TensorType type;
  InputKind kind = InputKind::data;  ///< its kind as an input of a program
  std::string name;                  ///< full name of a parameter or optimizer state, else empty
  std::variant<std::monostate, HostData, BufferPtr, SourcePtr> storage;
  std::optional<Sharding> marked;      ///< requested before it was first on the chips
  Restored kept{};                     ///< value that goes before `storage`, until its first use
  std::vector<std::string> aliases{};  ///< names of parameters that were tied to this one
  bool frozen = false;                 ///< a parameter that isn't trained
  bool is_exchanged = false;           ///< a parameter and its average, in an AverageScope
  bool has_ignored = false;            ///< labels, some of which are kIgnoreIndex
  bool was_assigned = false;   ///< state: by the loop, so that gradients flow; not by a step()
  std::source_location loc{};  ///< of the call that brought it to the chips; line 0: unknown

  /// The recording in which a read made this value, and its number there. Null for a value that no
  /// read has made, and for one that is recorded again.
  std::shared_ptr<Recording> origin{};
  ValueId origin_value = kNoId;

  /// Of what grad() returned, and of what weft made of it for the same parameter.
  std::shared_ptr<const GradientOf> gradient{};

  /// Of a recorded value: the call that recorded it, and its thread (gettid).
  std::source_location recorded{};
  int thread = 0;

  std::uint64_t trace = 0;      ///< the trace to which the next three belong
  ValueId value = kNoId;        ///< its current value
  ValueId stored = kNoId;       ///< the value that `storage` has
  std::uint32_t input = kNoId;  ///< number of the program input, if it is one

  bool is_state() const { return weft::is_state(kind); }
  /// Whether its value was never on the chips: it has no layout yet.
  bool is_off_chips() const {
    return std::holds_alternative<HostData>(storage) || std::holds_alternative<SourcePtr>(storage);
  }
  /// Whether this worker has only its rows, and no run has put it on the chips.
  bool is_local() const {
    const auto* source = std::get_if<SourcePtr>(&storage);
    return source != nullptr && (*source)->local() != nullptr;
  }
  /// Whether it is state that still has the value given by the loop, or by a file. A kept value may
  /// replace that.
  bool may_be_kept() const { return is_state() && is_off_chips(); }
  /// The sharding that a program requests of it as an input: the layout on the chips, closed;
  /// before it has one, the marked sharding; else an open one, which propagation decides.
  Sharding input_sharding() const;
  /// "'fc1.weight' f32[128,64]", or the type alone.
  std::string label() const;
};
using NodePtr = std::shared_ptr<TensorNode>;

/// The stored value as a program's input.
Binding binding_of(const TensorNode& node);

/// Whether the loop has made state with this value, so that it isn't that of a file or a run.
bool is_first_value(const Binding& value);

/// A node with these elements, in host memory; as many bytes as the type has.
NodePtr host_node(const TensorType& type, InputKind kind, std::string name,
                  std::span<const std::byte> elements, const std::source_location& loc = {});

/// A node whose elements the source has.
NodePtr source_node(const TensorType& type, InputKind kind, std::string name, SourcePtr source);

/// A tensor of data that is on the chips.
NodePtr data_node(BufferPtr buffer, const std::source_location& loc);

/// "train.cpp:41".
std::string file_line(const std::source_location& loc);

/// Throws invalid_argument for a handle without a value, naming `loc` if it is known.
[[noreturn]] void fail_undefined(const std::optional<std::source_location>& loc);
const NodePtr& node_of(const Tensor& tensor, std::optional<std::source_location> loc = {});

}  // namespace weft
