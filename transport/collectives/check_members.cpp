#include "transport/collectives/check_members.hpp"

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <weft/error.hpp>

#include "spmd/mesh/hybrid_mesh.hpp"
#include "transport/collectives/collective_call.hpp"
#include "transport/collectives/communicator.hpp"
#include "transport/job/control_format.hpp"

namespace weft {
namespace {

constexpr std::uint64_t kSource = kArenaTempOffset;
constexpr std::uint64_t kDestination = kSource + kOffsetAlignment;

/// Equal for equal meshes: of the sizes, the names and the order of the chips.
std::uint64_t tag_of(const Mesh& mesh) {
  std::uint64_t tag = 1;
  const auto add = [&tag](std::uint64_t word) { tag = signature_of(word, tag); };
  for (const std::int64_t size : mesh.shape()) add(static_cast<std::uint64_t>(size));
  for (const std::string& name : mesh.axis_names()) {
    add(name.size());
    for (const char letter : name) add(static_cast<unsigned char>(letter));
  }
  for (const int chip : mesh.device_ids()) add(static_cast<std::uint64_t>(chip));
  return tag;
}

/// One chip of this process, and its gathering along an axis.
class Member {
 public:
  Member(JobMemory& memory, const Mesh& mesh, int position, const Board& board, WaitPolicy policy)
      : memory_(&memory),
        mesh_(&mesh),
        position_(position),
        chip_(chip_on_host(mesh, position)),
        communicator_(std::make_unique<Communicator>(
            memory, mesh, position, Recorder(board.device(mesh.device_at(position))), policy)) {}

  /// Announces itself; doesn't wait.
  void start(int axis, std::uint64_t tag) {
    const std::string name = fmt::format("members of mesh {}", mesh_->to_string());
    const AtomList atoms = mesh_->axis_atoms(axis);
    memory_->reserve(chip_, kSource,
                     kOffsetAlignment + static_cast<std::size_t>(mesh_->count(atoms)) * 8);
    const std::int64_t own = position_;
    std::memcpy(memory_->arena(chip_) + kSource, &own, sizeof(own));
    call_ = communicator_->prepare({.kind = CollectiveKind::all_gather,
                                    .atoms = atoms,
                                    .dtype = DType::i64,
                                    .source = kSource,
                                    .destination = kDestination,
                                    .count = 1,
                                    .tag = tag,
                                    .name = name});
    communicator_->start(*call_);
  }

  void check(int axis) {
    communicator_->wait();
    const std::vector<int> group = mesh_->group(position_, mesh_->axis_atoms(axis));
    for (std::size_t i = 0; i < group.size(); ++i) {
      std::int64_t met = 0;
      std::memcpy(&met, memory_->arena(chip_) + kDestination + i * sizeof(met), sizeof(met));
      if (met == group[i]) continue;
      fail(Errc::mesh_mismatch,
           "along axis \"{}\" of mesh {} the chip at position {} expected its peer {} at position "
           "{}, but met the one at position {}: two processes have the same number, or not the "
           "same mesh",
           mesh_->axis_names()[static_cast<std::size_t>(axis)], mesh_->to_string(), position_, i,
           group[i], met);
    }
  }

  /// As at the beginning of a generation: no collective has been called.
  void forget() const { memory_->call_record(chip_).number.store(0, std::memory_order_relaxed); }

 private:
  JobMemory* memory_;
  const Mesh* mesh_;
  int position_;
  int chip_;  ///< number in the memory
  std::unique_ptr<Communicator> communicator_;
  std::optional<PreparedCall> call_;
};

}  // namespace

void check_members(JobMemory& memory, const Mesh& mesh, std::span<const int> positions,
                   const Board& board, WaitPolicy policy) {
  std::vector<Member> members;
  for (const int position : positions) members.emplace_back(memory, mesh, position, board, policy);
  const std::uint64_t tag = tag_of(mesh);
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    const AtomMask atoms = mesh.axis_atoms(axis).mask();
    if (atoms == 0 || tier_of(atoms, mesh) != Tier::ici) continue;
    // One thread has all chips of the process: each must have come before any is waited for.
    for (Member& member : members) member.start(axis, tag);
    for (Member& member : members) member.check(axis);
  }
  for (const Member& member : members) member.forget();
}

}  // namespace weft
