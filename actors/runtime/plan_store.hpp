#pragma once
/// PlanStore: keeps compiled plans in a folder (like torch_xla's persistent compilation cache).

#include <memory>
#include <string>

#include <weft/sharding/mesh.hpp>

#include "spmd/ops/fingerprint.hpp"
#include "spmd/plan/plan.hpp"

namespace weft {

/// There is one file per plan. The file is named by a digest of the program, the mesh, the target
/// and the executable. So another build of weft, or of the program that contains it, doesn't find
/// the file. Files are written under a temporary name and renamed, so that several jobs may share
/// the folder.
class PlanStore {
 public:
  /// `folder` is created when the first plan is stored. If it is "", the store does nothing.
  PlanStore(std::string folder, const Mesh& mesh, const Target& target);

  bool is_on() const { return !folder_.empty(); }
  /// Loads a plan; null if there is none. Ignores a file, with a warning, if it isn't a valid plan
  /// for this mesh and the program's inputs and outputs.
  std::shared_ptr<const Plan> load(const Fingerprint& key, const Program& program) const;
  /// Stores a plan. Warns if the folder can't be written.
  void keep(const Fingerprint& key, const Plan& plan) const;

 private:
  std::string path(const Fingerprint& key) const;

  std::string folder_;
  const Mesh& mesh_;
  std::string suffix_;  // suffix of the file names: mesh, target and executable
};

}  // namespace weft
