#pragma once
/// TensorSource: the elements of a tensor that are not in memory yet, such as those of a file, or
/// of which this worker has only a part. The runtime asks for the boxes that its chips need as soon
/// as their layout is known.

#include <cstddef>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include <weft/tensor/tensor.hpp>

#include "spmd/mesh/box.hpp"
#include "spmd/mesh/row_parts.hpp"

namespace weft {

class LocalRows;

/// A source is the same on every worker, except LocalRows.
class TensorSource {
 public:
  virtual ~TensorSource() = default;

  struct Target {
    PlacedBox placed{};
    std::byte* memory = nullptr;
  };
  /// Writes the elements of the boxes, in the tensor's dtype. The remaining memory of their rooms
  /// keeps its content. Any thread may call this. Throws io, corrupt or not_found, with the
  /// tensor's name.
  virtual void read(std::span<const Target> targets) const = 0;
  /// Returns a hash that workers compare. Equal sources have equal hashes. Large sources are
  /// sampled, so that the hash may miss a difference.
  virtual std::uint64_t digest() const = 0;
  /// Returns whether this is the initial value that the training loop gave the state.
  virtual bool is_first_value() const { return false; }
  /// Returns the source as LocalRows if it has only this worker's rows; otherwise null.
  virtual const LocalRows* local() const { return nullptr; }
};
using SourcePtr = std::shared_ptr<const TensorSource>;

/// The rows of a global tensor that belong to this worker's chips, in memory. The tensor's layout
/// on the chips must be the one for which row_parts() returned `parts`.
class LocalRows : public TensorSource {
 public:
  /// `rows` are this worker's own, and `type` is their type; each part has equally many of them.
  LocalRows(const TensorType& type, std::shared_ptr<const std::vector<std::byte>> rows,
            RowParts parts);

  void read(std::span<const Target> targets) const override;
  std::uint64_t digest() const override { return 0; }  // workers have different rows; see bytes()
  const LocalRows* local() const override { return this; }

  std::span<const std::byte> bytes() const { return *rows_; }
  /// Returns for example "part 1 of 4".
  std::string name() const;

 private:
  TensorType type_;
  std::shared_ptr<const std::vector<std::byte>> rows_;
  RowParts parts_;
};

/// A call by which the training loop gives a parameter, buffer or optimizer state another value.
struct StateChange {
  std::string_view name;
  std::source_location loc;
  bool is_immediate = false;  ///< the host sets the value at once; else the next program makes it
};

/// Throws invalid_argument, naming the tensor, if ops recorded since the last sync use or assign
/// it: they would read the new value instead of the one that the tensor had when they were
/// recorded.
void require_no_recorded_use(const Tensor& state, const std::source_location& loc);

/// Gives the tensor (a parameter or optimizer state) the source's elements. A tensor with a layout
/// on the chips keeps this layout; any other gets `laid_out` unless it is marked. A value kept from
/// an interrupted loop has precedence over the source. Throws as require_no_recorded_use().
void set_source(const Tensor& state, SourcePtr source, const std::optional<Sharding>& laid_out,
                const std::source_location& loc);

/// Sets the state's elements now: as many bytes as its type has, the same on every worker. The
/// elements belong to the current step: a checkpoint of this step contains them, and a loop that
/// restarts at this step has them. They are whole on each chip. Throws as
/// require_no_recorded_use().
void set_elements(const Tensor& state, std::span<const std::byte> elements,
                  const std::source_location& loc);
/// Calls set_elements() with the state's present elements, unless the state is on the chips.
void put_in_place(const Tensor& state, const std::source_location& loc);

/// Returns whether the loop or the checkpoint that this thread's loop continues has state of this
/// name.
bool is_kept(const std::string& name);

}  // namespace weft
