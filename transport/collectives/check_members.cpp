#include "transport/collectives/check_members.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "spmd/mesh/hybrid_mesh.hpp"
#include "transport/collectives/algorithm.hpp"
#include "transport/collectives/collective_call.hpp"
#include "transport/collectives/communicator.hpp"
#include "transport/job/control_format.hpp"

namespace weft {
namespace {

// A process calls start() for all of its chips on one thread before it waits for any of them. A
// barrier with a second sync would deadlock, because start() of the first chip would wait for the
// others.
static_assert(!has_exit_sync(Algorithm::signal));

/// Computes an FNV-1a hash of words.
class Digest {
 public:
  void add(std::uint64_t word) { value_ = (value_ ^ word) * 0x100'0000'01b3; }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf2'9ce4'8422'2325;
};

/// Returns a tag by which chips compare their mesh and group: a hash of the sizes and names of the
/// axes, the order of the chips, and the members of the group.
std::uint64_t tag_of(const Mesh& mesh, const std::vector<int>& group) {
  Digest tag;
  for (const std::int64_t size : mesh.shape()) tag.add(static_cast<std::uint64_t>(size));
  for (const std::string& name : mesh.axis_names()) {
    tag.add(name.size());
    for (const char letter : name) tag.add(static_cast<unsigned char>(letter));
  }
  for (const int chip : mesh.device_ids()) tag.add(static_cast<std::uint64_t>(chip));
  for (const int position : group) tag.add(static_cast<std::uint64_t>(position));
  return tag.value();
}

/// One chip of this process, in the barrier along an axis.
class Member {
 public:
  Member(JobMemory& memory, const Mesh& mesh, int position, const Board& board, WaitPolicy policy)
      : record_(&memory.call_record(chip_on_host(mesh, position))),
        mesh_(&mesh),
        position_(position),
        communicator_(std::make_unique<Communicator>(
            memory, mesh, position, Recorder(board.device(mesh.device_at(position))), policy)) {}

  /// Announces the chip's arrival without waiting.
  void start(AtomList atoms) {
    const std::string name = fmt::format("members of mesh {}", mesh_->to_string());
    barrier_ = communicator_->prepare({.kind = CollectiveKind::barrier,
                                       .atoms = atoms,
                                       .tag = tag_of(*mesh_, mesh_->group(position_, atoms)),
                                       .name = name});
    communicator_->start(*barrier_);
  }
  void wait() { communicator_->wait(); }

  /// Resets the chip's record to its state at the beginning of a generation: the chip has called no
  /// collective yet.
  void forget() const { record_->number.store(0, std::memory_order_relaxed); }

 private:
  CallRecord* record_;
  const Mesh* mesh_;
  int position_;
  std::unique_ptr<Communicator> communicator_;
  std::optional<PreparedCall> barrier_;
};

}  // namespace

void check_members(JobMemory& memory, const Mesh& mesh, std::span<const int> positions,
                   const Board& board, WaitPolicy policy) {
  std::vector<Member> members;
  for (const int position : positions) members.emplace_back(memory, mesh, position, board, policy);
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    const AtomList atoms = mesh.axis_atoms(axis);
    if (atoms.size() == 0 || tier_of(atoms.mask(), mesh) != Tier::ici) continue;
    for (Member& member : members) member.start(atoms);
    try {
      for (Member& member : members) member.wait();
    } catch (const Error& e) {
      if (e.code() != Errc::program_divergence) throw;
      fail(e.code(),
           "the chips along axis \"{}\" don't agree on the mesh or on their positions in it: "
           "all workers must be of one job and one build: {}",
           mesh.axis_names()[static_cast<std::size_t>(axis)], e.what());
    }
  }
  for (const Member& member : members) member.forget();
}

}  // namespace weft
