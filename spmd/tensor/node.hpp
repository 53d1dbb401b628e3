#pragma once
/// TensorNode: what a Tensor handle points to. For the files of this folder.

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

/// What the handles of a tensor share. Its value is in `storage`, or (monostate) only in the trace
/// numbered `trace`; a parameter that was assigned in that trace has an older one in `storage`.
struct TensorNode {
  TensorType type;
  InputKind kind = InputKind::data;  ///< what it is as an input of a program
  std::string name;                  ///< full name of a parameter or optimizer state, else empty
  std::variant<std::monostate, HostData, BufferPtr> storage;
  std::optional<Sharding> marked;  ///< asked for before it first lay on the chips
  BufferPtr kept{};          ///< what a loop that was interrupted has left of it, to its first use
  bool has_ignored = false;  ///< labels, some of which are kIgnoreIndex
  std::source_location loc{};  ///< of the call that brought it to the chips; line 0: unknown

  /// Of a value that was computed because something was read in the middle of a step, in which no
  /// gradient flows back through it from then on: where, and from which tensors.
  struct Cut {
    std::source_location loc;
    std::uint64_t step = 0;
    std::vector<std::weak_ptr<const TensorNode>> from;
  };
  Cut cut{};

  /// Of what was recorded: by which call, on which thread (gettid).
  std::source_location recorded{};
  int thread = 0;

  std::uint64_t trace = 0;      ///< the trace that the next two belong to
  ValueId value = kNoId;        ///< its current value
  std::uint32_t input = kNoId;  ///< the program input that it is, if it is one

  bool is_state() const { return weft::is_state(kind); }
  /// What a program asks of it as an input: how it lies on the chips, closed; before that, what was
  /// marked; else propagation decides.
  Sharding input_sharding() const;
  /// "'fc1.weight' f32[128,64]", or the type alone.
  std::string label() const;
};
using NodePtr = std::shared_ptr<TensorNode>;

/// A node with these elements on the host, as many bytes as the type has.
NodePtr host_node(const TensorType& type, InputKind kind, std::string name,
                  std::span<const std::byte> elements, const std::source_location& loc = {});

/// "train.cpp:41".
std::string file_line(const std::source_location& loc);

/// Throws invalid_argument for a handle without a value, naming `loc` if it is known.
[[noreturn]] void fail_undefined(const std::optional<std::source_location>& loc);
const NodePtr& node_of(const Tensor& tensor, const std::optional<std::source_location>& loc = {});

}  // namespace weft
