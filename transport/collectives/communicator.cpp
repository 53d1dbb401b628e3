#include "transport/collectives/communicator.hpp"

#include <string>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>

#include "spmd/mesh/hybrid_mesh.hpp"
#include "transport/collectives/call_record.hpp"
#include "transport/collectives/shared_memory_tier.hpp"

namespace weft {
namespace {

void require_chips(const JobMemory& memory, const Mesh& mesh, int position) {
  if (chips_per_host(mesh) > memory.num_chips()) {
    fail(Errc::mesh_mismatch, "mesh {} has {} chips{}, but the job's memory has {}",
         mesh.to_string(), chips_per_host(mesh), mesh.dcn_atoms() != 0 ? " on a host" : "",
         memory.num_chips());
  }
  if (position < 0 || position >= mesh.size()) {
    fail(Errc::invalid_argument, "position = {}: mesh {} has positions 0 to {}", position,
         mesh.to_string(), mesh.size() - 1);
  }
}

void require_atoms(AtomList atoms, const Mesh& mesh) {
  for (int i = 0; i < atoms.size(); ++i) {
    if (atoms[i] == 0 || atoms[i] > mesh.num_atoms() || atoms.prefix(i).contains(atoms[i])) {
      fail(Errc::invalid_argument,
           "collective over atoms {:#x}: expected distinct atoms of 1 to {}", atoms.bits(),
           mesh.num_atoms());
    }
  }
}

/// Returns the names of the mesh's axes that have an atom in the mask.
std::vector<std::string> axes_of(AtomMask mask, const Mesh& mesh) {
  std::vector<std::string> names;
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    if ((mesh.axis_atoms(axis).mask() & mask) != 0) {
      names.push_back(mesh.axis_names()[static_cast<std::size_t>(axis)]);
    }
  }
  return names;
}

std::string label_of(const CollectiveCall& call) {
  if (call.name.empty()) return std::string(to_string(call.kind));
  return fmt::format("{} '{}'", to_string(call.kind), call.name);
}

}  // namespace

std::string to_string(const StartedCall& started, const Mesh& mesh) {
  return to_string(RecordedCall{started.number, started.call->words(), started.call->name()}, mesh);
}

Communicator::Communicator(JobMemory& memory, const Mesh& mesh, int position,
                           const Recorder& recorder, WaitPolicy policy,
                           std::unique_ptr<CollectiveTier> network)
    : memory_(&memory), mesh_(&mesh), recorder_(recorder), network_(std::move(network)) {
  require_chips(memory, mesh, position);
  chip_ = chip_on_host(mesh, position);
  record_ = &memory.call_record(chip_);
  current_.number = record_->number.load(std::memory_order_relaxed);
  shared_memory_ = std::make_unique<SharedMemoryTier>(memory, mesh, position, recorder, policy);
}

Communicator::~Communicator() = default;

CollectiveTier& Communicator::tier_for(const CollectiveCall& call) const {
  if (tier_of(call.atoms.mask(), *mesh_) == Tier::ici) return *shared_memory_;
  if (call.shared) {
    fail(Errc::invalid_argument,
         "{}: shared = true over axes that cross hosts: chips of several hosts share no memory",
         label_of(call));
  }
  if (network_) return *network_;
  const auto across = static_cast<AtomMask>(call.atoms.mask() & mesh_->dcn_atoms());
  fail(Errc::unavailable,
       "{}: axis {} of mesh {} crosses hosts, but the job has no network between hosts; use a mesh "
       "whose chips are all on one host",
       label_of(call), fmt::join(axes_of(across, *mesh_), ", "), mesh_->to_string());
}

PreparedCall Communicator::prepare(const CollectiveCall& call) {
  require_atoms(call.atoms, *mesh_);
  require_valid(call, static_cast<int>(mesh_->count(call.atoms)), memory_->arena_capacity());
  PreparedCall prepared;
  prepared.id_ = ++prepared_count_;
  prepared.words_ = encode(call);
  prepared.digest_ = digest_of(prepared.words_);
  prepared.name_ = call.name;
  prepared.label_ = label_of(call);
  prepared.text_ = recorder_.events.intern(prepared.label_);
  prepared.entry_ = recorder_.ledger.entry_of(prepared.text_);
  prepared.bytes_ = bytes_of(call, static_cast<int>(mesh_->count(call.atoms))).source;
  prepared.tier_ = &tier_for(call);
  prepared.tier_call_ = prepared.tier_->prepare(call);
  return prepared;
}

void Communicator::leave_body() {
  memory_->commit_line(chip_).bodies.fetch_add(1, std::memory_order_release);
}

void leave_loop(JobMemory& memory, const Mesh& mesh, std::span<const int> positions) {
  for (const int position : positions) {
    const int chip = chip_on_host(mesh, position);
    memory.commit_line(chip).bodies.store(kLoopEnded, std::memory_order_release);
  }
}

void Communicator::require_ended(const PreparedCall& next) const {
  if (current_.call == nullptr) return;
  fail(Errc::invalid_argument, "chip {} can't start {} before {} has ended", chip_, next.label_,
       to_string(current_, *mesh_));
}

void Communicator::start(const PreparedCall& call) {
  require_ended(call);
  current_.call = &call;
  current_.signature = signature_of(++current_.number, call.digest_);
  call.tier_->start(current_, *call.tier_call_);
  record(call);  // done while the announcement travels to the other chips
}

/// Writes the record that the other chips read after an error. If the chip repeats its previous
/// call, only the call's number and signature are written.
void Communicator::record(const PreparedCall& call) {
  if (recorded_ == call.id_) {
    renew_record(*record_, current_.number, current_.signature);
    recorder_.board.enter_collective_again(current_.number);
  } else {
    write_record(*record_, current_.number, call.words_, current_.signature, call.name_);
    recorder_.board.enter_collective(current_.number, call.label_);
    recorded_ = call.id_;
  }
  note_enter(current_);
}

void Communicator::note_enter(const StartedCall& started) const {
  recorder_.events.put(
      EventKind::enter,
      {.number = started.number, .value = started.call->bytes_, .text = started.call->text_});
}

void Communicator::note_leave(const StartedCall& ended) const {
  const PreparedCall& call = *ended.call;
  if (recorder_.events.is_on()) {
    const ChipArrival arrival = call.tier_->arrival();
    recorder_.events.put(EventKind::leave, {.number = ended.number,
                                            .value = arrival.waited,
                                            .peer = arrival.last_chip,
                                            .text = call.text_});
    recorder_.ledger.add(call.entry_, arrival);
  }
  recorder_.board.leave_collective();
}

void Communicator::wait() {
  if (current_.call == nullptr) return;
  current_.call->tier_->wait();
  note_leave(current_);
  current_.call = nullptr;
}

bool Communicator::begin(const PreparedCall& call) {
  require_ended(call);
  const std::uint64_t number = current_.number + 1;
  const StartedCall& started = begun_.emplace_back(StartedCall{
      .call = &call,
      .number = number,
      .signature = signature_of(number, call.digest_),
      .step = current_.step,
  });
  if (!call.tier_->begin(started, *call.tier_call_)) {
    begun_.pop_back();
    return false;
  }
  current_.number = number;
  write_record(*record_, number, call.words_, started.signature, call.name_);
  recorded_ = 0;  // so that the record is written again
  return true;
}

bool Communicator::end_begun(bool wait) {
  if (begun_.empty()) return true;
  const StartedCall& first = begun_.front();
  CollectiveTier& tier = *first.call->tier_;
  if (!std::exchange(is_ending_, true)) {
    recorder_.board.enter_collective(first.number, first.call->label_);
    recorded_ = 0;
    note_enter(first);
  }
  if (wait) {
    tier.wait_begun();
  } else if (!tier.poll_begun()) {
    return false;
  }
  note_leave(first);
  begun_.pop_front();
  is_ending_ = false;
  return true;
}

void Communicator::check_begun() const {
  if (network_) network_->check_begun();
}

void Communicator::abandon() noexcept {
  if (network_) network_->abandon();
  begun_.clear();
  is_ending_ = false;
}

}  // namespace weft
