#pragma once
/// ResumedState: gives the tensors of a loop the values that they have in the checkpoint from which
/// the loop goes on.

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <weft/mesh.hpp>

#include "spmd/program/program.hpp"
#include "spmd/tensor/runtime.hpp"
#include "transport/storage/state_file.hpp"

namespace weft {

/// Used by the loop's thread, in the loop's first step.
class ResumedState {
 public:
  /// `lets_make`: what the checkpoint lacks may be made by the loop, as RunConfig::resume_partial
  /// says.
  ResumedState(std::shared_ptr<const StateFile> file, bool lets_make)
      : file_(std::move(file)), lets_make_(lets_make) {}

  const StateFile& file() const { return *file_; }
  bool has(const std::string& name) const;
  /// The checkpoint's value of this name, laid out as it was saved if the mesh is the same. None,
  /// where the checkpoint has none of this name and type.
  Restored take(const std::string& name, const TensorType& type, const Mesh& mesh);
  /// Throws invalid_argument if a run uses state for which take() had no value, with the value that
  /// the loop itself gave it; names all for which it had none. What load() gave a value is fine,
  /// and so is all that a partial checkpoint lacks.
  void require_taken(std::span<const ProgramInput> inputs, std::span<const Binding> values) const;
  /// The tensors of the checkpoint that the loop's have taken their values from.
  struct Taken {
    const FileTensor& tensor;
    TensorType type;
    Restored restored;
  };
  std::vector<Taken> taken(const Mesh& mesh) const;
  /// What the checkpoint has and nobody took; "" if that is nothing.
  std::string untaken() const;
  /// What the loop made itself because `lets_make` lets it; "" if that is nothing.
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
