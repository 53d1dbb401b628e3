#pragma once
/// PlanStore: compiled plans in a folder (torch_xla's persistent compilation cache).

#include <memory>
#include <string>

#include <weft/mesh.hpp>

#include "spmd/ops/fingerprint.hpp"
#include "spmd/plan/plan.hpp"

namespace weft {

/// One file per plan, named by a digest of the program, the mesh and the executable: another build
/// of weft, or of the program that embeds it, finds none of them. Files are written under a
/// temporary name and renamed, so that several jobs may share the folder.
class PlanStore {
 public:
  /// `folder` is created with the first plan; "" disables the store.
  PlanStore(std::string folder, const Mesh& mesh);

  bool is_on() const { return !folder_.empty(); }
  /// Null if there is none. A file that isn't a valid plan for this mesh, with the program's inputs
  /// and outputs, is ignored with a warning.
  std::shared_ptr<const Plan> load(const Fingerprint& key, const Program& program) const;
  /// Stores a plan. A folder that can't be written causes a warning.
  void keep(const Fingerprint& key, const Plan& plan) const;

 private:
  std::string path(const Fingerprint& key) const;

  std::string folder_;
  const Mesh& mesh_;
  std::string suffix_;  // of the file names: mesh and executable
};

}  // namespace weft
