#pragma once
/// ResumedState: the values of a checkpoint, from which the tensors of a loop that continues get
/// theirs.

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <weft/sharding/mesh.hpp>

#include "spmd/program/program.hpp"
#include "spmd/tensor/runtime.hpp"
#include "transport/storage/state_file.hpp"

namespace weft {

/// The state from which a loop continues. Only the loop's thread may use it, in its first step.
class ResumedState {
 public:
  /// Takes values from `file`. If `lets_make` is true, the loop may initialize state that the
  /// checkpoint lacks (RunConfig::resume_partial).
  ResumedState(std::shared_ptr<const StateFile> file, bool lets_make)
      : file_(std::move(file)), lets_make_(lets_make) {}

  const StateFile& file() const { return *file_; }
  bool has(const std::string& name) const;
  /// Returns the checkpoint's value of this name, in the layout in which it was saved if the mesh
  /// is the same. The result has no value if the checkpoint has no tensor of this name and type.
  Restored take(const std::string& name, const TensorType& type, const Mesh& mesh);
  /// Checks the inputs of a run. If take() found no value for a state tensor, the tensor still has
  /// the value that the loop gave it. Throws invalid_argument if the run uses such state, with all
  /// its names. State that load() has set is allowed, and so is all state that a partial checkpoint
  /// lacks.
  void require_taken(std::span<const ProgramInput> inputs, std::span<const Binding> values) const;
  /// A tensor of the checkpoint whose value a tensor of the loop has taken.
  struct Taken {
    const FileTensor& tensor;
    TensorType type;
    Restored restored;
  };
  std::vector<Taken> taken(const Mesh& mesh) const;
  /// Returns the names of the checkpoint's tensors whose value no tensor of the loop has taken; ""
  /// if there are none.
  std::string untaken() const;
  /// Returns the names of the state that the loop initialized because `lets_make` is true; "" if
  /// there is none.
  std::string made() const;

 private:
  std::string why_not(const std::string& name) const;
  Restored restored(const FileTensor& tensor, DType dtype, const Mesh& mesh) const;

  const std::shared_ptr<const StateFile> file_;
  const bool lets_make_;
  std::set<std::string> taken_;
  std::set<std::string> made_;
  std::map<std::string, TensorType> refused_;
};

}  // namespace weft
