#pragma once
/// PlanStore: plans that were compiled before, kept in a folder (torch_xla's persistent compilation
/// cache).

#include <memory>
#include <string>

#include <weft/mesh.hpp>

#include "spmd/ops/fingerprint.hpp"
#include "spmd/plan/plan.hpp"

namespace weft {

/// A file for each plan, named by a digest of the program, the mesh and the executable: another
/// build of weft, or of the program that embeds it, finds none of its plans. Files are written
/// under another name and renamed, so that several jobs may share the folder.
class PlanStore {
 public:
  /// `folder` is made when the first plan is kept; "" keeps nothing and has nothing.
  PlanStore(std::string folder, const Mesh& mesh);

  bool is_on() const { return !folder_.empty(); }
  /// Null for none. A file that isn't a sound plan for this mesh, with the program's inputs and
  /// outputs, counts as none, with a warning.
  std::shared_ptr<const Plan> load(const Fingerprint& key, const Program& program) const;
  /// A folder that can't be written is a warning.
  void keep(const Fingerprint& key, const Plan& plan) const;

 private:
  std::string path(const Fingerprint& key) const;

  std::string folder_;
  const Mesh& mesh_;
  std::string suffix_;  // of the file names: mesh and executable
};

}  // namespace weft
