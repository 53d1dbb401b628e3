#pragma once
/// TensorSource: the elements of a tensor that aren't all in this worker's memory, because they are
/// in a file, say, or on other workers too. The runtime reads the boxes that its chips need as soon
/// as the layout is known.

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

/// A source has the same elements on every worker, unless it is a LocalRows.
class TensorSource {
 public:
  virtual ~TensorSource() = default;

  struct Target {
    PlacedBox placed{};
    std::byte* memory = nullptr;
  };
  /// Writes the elements of each target's box to its memory, in the tensor's dtype, and leaves the
  /// rest of the box's room unchanged. Any thread may call this. Throws io, corrupt or not_found,
  /// with the tensor's name.
  virtual void read(std::span<const Target> targets) const = 0;
  /// Returns a hash that workers compare. Equal sources have equal hashes. Of a large source only
  /// samples are hashed, so that the hash may miss a difference.
  virtual std::uint64_t digest() const = 0;
  /// Returns whether the source is the initial value that the training loop gave the state.
  virtual bool is_first_value() const { return false; }
  /// Returns the source as LocalRows if it has only this worker's rows; otherwise null.
  virtual const LocalRows* local() const { return nullptr; }
};
using SourcePtr = std::shared_ptr<const TensorSource>;

/// The rows of a global tensor that belong to this worker's chips, in memory. The tensor's layout
/// on the chips must be the one for which row_parts() returned `parts`.
class LocalRows : public TensorSource {
 public:
  /// `rows` are this worker's own rows, and `type` is their type. All parts have equally many rows.
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

/// A change of state: a call that gives a parameter, buffer or optimizer state another value.
struct StateChange {
  std::string_view name;
  std::source_location loc;
  bool is_immediate = false;  ///< whether the host sets the value now, or the next program
};

/// Throws invalid_argument, naming the tensor, if ops recorded since the last sync use or assign
/// it. Such ops would read the new value instead of the value that the tensor had when they were
/// recorded.
void require_no_recorded_use(const Tensor& state, const std::source_location& loc);

/// Gives the tensor (a parameter or optimizer state) the source's elements. A tensor with a layout
/// on the chips keeps this layout; any other gets `laid_out` unless it is marked. A value kept from
/// an interrupted loop has precedence over the source. Throws like require_no_recorded_use().
void set_source(const Tensor& state, SourcePtr source, const std::optional<Sharding>& laid_out,
                const std::source_location& loc);

/// Sets the state's elements now: as many bytes as its type has, the same on every worker. The
/// elements belong to the current step: a checkpoint of this step contains them, and a loop that
/// restarts at this step has them. Each chip has all of them. Throws like
/// require_no_recorded_use().
void set_elements(const Tensor& state, std::span<const std::byte> elements,
                  const std::source_location& loc);
/// Puts the state on the chips, unless it is there, by calling set_elements() with its present
/// elements.
void put_in_place(const Tensor& state, const std::source_location& loc);

/// Returns whether this thread's loop continues a loop or checkpoint that has state of this name.
bool is_kept(const std::string& name);

}  // namespace weft
