#pragma once
/// TensorSource: the elements of a tensor that are not in memory yet, such as those of a file, or
/// of which this worker has only its part. The runtime asks for the boxes that its chips need, once
/// their layout is known.

#include <cstddef>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include <weft/tensor.hpp>

#include "spmd/mesh/box.hpp"
#include "spmd/mesh/row_parts.hpp"

namespace weft {

class LocalRows;

/// The same on every worker, but for LocalRows.
class TensorSource {
 public:
  virtual ~TensorSource() = default;

  struct Target {
    PlacedBox placed{};
    std::byte* memory = nullptr;
  };
  /// Writes the elements of the boxes, in the tensor's dtype; other elements of their rooms stay as
  /// they are. Any thread. Throws io, corrupt or not_found, with the tensor's name.
  virtual void read(std::span<const Target> targets) const = 0;
  /// A hash that workers compare. Equal sources have equal hashes; large ones are sampled, so that
  /// a difference may be missed.
  virtual std::uint64_t digest() const = 0;
  /// Whether the loop has made the state with this value, so that it isn't that of a file.
  virtual bool is_first_value() const { return false; }
  /// Null for a source that has all elements.
  virtual const LocalRows* local() const { return nullptr; }
};
using SourcePtr = std::shared_ptr<const TensorSource>;

/// The rows of a global tensor that lie on this worker's chips, in memory. Its layout there must be
/// the one for which `parts` were found.
class LocalRows : public TensorSource {
 public:
  /// `type`: of `rows`, those of this worker, equally many for each part.
  LocalRows(const TensorType& type, std::shared_ptr<const std::vector<std::byte>> rows,
            RowParts parts);

  void read(std::span<const Target> targets) const override;
  std::uint64_t digest() const override { return 0; }  // of each part another: see bytes()
  const LocalRows* local() const override { return this; }

  std::span<const std::byte> bytes() const { return *rows_; }
  /// "part 1 of 4".
  std::string name() const;

 private:
  TensorType type_;
  std::shared_ptr<const std::vector<std::byte>> rows_;
  RowParts parts_;
};

/// A call of the loop that gives a parameter, buffer or optimizer state another value.
struct StateChange {
  std::string_view name;
  std::source_location loc;
  bool is_immediate = false;  ///< by the host, at once; else the next program makes the value
};

/// Throws invalid_argument, naming the tensor, if ops that were recorded since the last sync use or
/// assign it: they would get another value than it had.
void require_no_recorded_use(const Tensor& state, const std::source_location& loc);

/// From now on the tensor (a parameter or optimizer state) has the source's elements. Its layout on
/// the chips stays if it has one, else it is `laid_out` if nobody marks it. A value that is kept
/// from an interrupted loop goes before the source. Throws as require_no_recorded_use().
void set_source(const Tensor& state, SourcePtr source, const std::optional<Sharding>& laid_out,
                const std::source_location& loc);

/// Sets the state's elements now: as many bytes as its type has, the same on every worker. They
/// belong to the current step: a save in it has them, and so has a loop that restarts at it. On the
/// chips they lie whole. Throws as require_no_recorded_use().
void set_elements(const Tensor& state, std::span<const std::byte> elements,
                  const std::source_location& loc);
/// The same, with the elements that the state has, unless it is on the chips.
void put_in_place(const Tensor& state, const std::source_location& loc);

/// Whether the loop, or the checkpoint, that this thread's loop continues has state of this name.
bool is_kept(const std::string& name);

}  // namespace weft
