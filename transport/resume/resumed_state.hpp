#pragma once
/// ResumedState: gives a loop's tensors their values from the checkpoint from which the loop
/// continues.

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

/// Only the loop's thread may use it, in the loop's first step.
class ResumedState {
 public:
  /// With `lets_make`, the loop may make the state that the checkpoint lacks, as
  /// RunConfig::resume_partial says.
  ResumedState(std::shared_ptr<const StateFile> file, bool lets_make)
      : file_(std::move(file)), lets_make_(lets_make) {}

  const StateFile& file() const { return *file_; }
  bool has(const std::string& name) const;
  /// Returns the checkpoint's value of this name. If the mesh is the same, the value has the layout
  /// with which it was saved. Without a value if the checkpoint has none of this name and type.
  Restored take(const std::string& name, const TensorType& type, const Mesh& mesh);
  /// Throws invalid_argument if a run uses state for which take() had no value, with the value that
  /// the loop itself gave it. The message names all such state. State that load() has set is
  /// allowed, and so is all state that a partial checkpoint lacks.
  void require_taken(std::span<const ProgramInput> inputs, std::span<const Binding> values) const;
  /// The tensors of the checkpoint from which the loop's tensors have taken their values.
  struct Taken {
    const FileTensor& tensor;
    TensorType type;
    Restored restored;
  };
  std::vector<Taken> taken(const Mesh& mesh) const;
  /// Returns the names of the checkpoint's tensors that no tensor of the loop has taken; "": none.
  std::string untaken() const;
  /// Returns the names of the state that the loop made itself, as `lets_make` permits; "": none.
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
