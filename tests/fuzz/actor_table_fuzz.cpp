/// Reads the fuzz input as the memory of an actor system, as `weft inspect` does: the table of
/// actors with two rings of calls, the table of processes, and the ports and blocks of the first
/// process. The input has those parts of the sparse segments that a small system uses, one after
/// the other.

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "inspect/history/system_trace.hpp"
#include "inspect/systems/system_blocks.hpp"
#include "inspect/systems/system_events.hpp"
#include "inspect/systems/system_reader.hpp"
#include "inspect/systems/system_views.hpp"
#include "inspect/systems/system_why.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/planted.hpp"
#include "tests/support/trace_grammar.hpp"
#include "transport/actors/actor_table_format.hpp"
#include "transport/lanes/lane_format.hpp"
#include "transport/lanes/peer_memory.hpp"
#include "transport/lanes/peer_table.hpp"
#include "transport/memory/life_lock.hpp"

namespace weft {
namespace {

constexpr std::uint32_t kPort = 1;
constexpr PeerId kFirst{.slot = 0, .incarnation = 1};

class PlantedSystem {
 public:
  explicit PlantedSystem(const std::string& id)
      : table_(Segment::create(actor_table_name(id), kActorTableBytes)),
        peers_(Segment::create(PeerTable::segment_name(id),
                               sizeof(TableHeader) + kPeerCountMax * sizeof(PeerRow))),
        mail_(Segment::create(PeerMemory::mail_name(id, kFirst), mail_bytes(kPort + 1))) {}
  PlantedSystem(const PlantedSystem&) = delete;
  PlantedSystem& operator=(const PlantedSystem&) = delete;
  ~PlantedSystem() {
    for (const Segment* each : {&table_, &peers_, &mail_}) Segment::remove(each->name());
  }

  const Segment& table() const { return table_; }

  void put(std::span<const std::byte> input) {
    put(table_, 0, mesh_row_offset(2), input);
    put(table_, actor_row_offset(0), 16 * sizeof(ActorTableRow), input);
    put(peers_, 0, sizeof(TableHeader), input);
    for (std::size_t slot = 0; slot < 3; ++slot) {
      put(peers_, sizeof(TableHeader) + slot * sizeof(PeerRow), 64, input);
    }
    put(mail_, 0, sizeof(MailHeader) + 64, input);
    put(mail_, ledger_offset(), 4 * sizeof(LedgerRow), input);
    put(mail_, port_offset(kPort), sizeof(PortHead), input);
    put(mail_, lane_offset(kPort, 0), 128 + 3 * sizeof(Entry), input);
    put(table_, ring_ports_offset(0), 3 * sizeof(std::uint64_t), input);
    for (std::uint32_t slot = 0; slot < 2; ++slot) {
      put(table_, call_ring_offset(slot, kPort), 64 + 8 * sizeof(CallRingRecord), input);
    }
    put(table_, job_source_offset(0, 0), 2 * sizeof(JobSourceRow), input);
  }

  /// Makes fields valid that a mutation hardly would, so that the reader reads on.
  void repair() {
    auto& head = *reinterpret_cast<ActorTableHead*>(table_.data());
    head.magic = kActorTableMagic;
    head.version = kActorTableVersion;
    head.tick_source = static_cast<std::uint32_t>(TickSource::monotonic);
    head.start = {};
    auto* ports = reinterpret_cast<std::uint64_t*>(table_.data() + ring_ports_offset(0));
    std::fill(ports, ports + 2, std::uint64_t{1} << kPort);
    auto* sources = reinterpret_cast<JobSourceRow*>(table_.data() + job_source_offset(0, 0));
    for (std::uint32_t i = 0; i < 2; ++i) sources[i].is_set = 1;
    std::uint32_t rows = 0;
    for (std::uint32_t m = 0; m < 2; ++m) {
      auto& mesh = *reinterpret_cast<MeshTableRow*>(table_.data() + mesh_row_offset(m));
      mesh.first_row = rows;
      mesh.row_count %= 9;
      mesh.count %= mesh.row_count + 1;
      rows += mesh.row_count;
    }
    auto& peers = *reinterpret_cast<TableHeader*>(peers_.data());
    peers.magic = kPeerTableMagic;
    peers.version = kLaneVersion;
    reinterpret_cast<PeerRow*>(peers_.data() + sizeof(TableHeader))
        ->life.store(PeerLife{.state = PeerState::alive, .incarnation = 1}.word());
    auto& mail = *reinterpret_cast<MailHeader*>(mail_.data());
    mail.magic = kMailMagic;
    mail.version = kLaneVersion;
    mail.port_count = kPort + 1;
  }

 private:
  static void put(Segment& segment, std::size_t offset, std::size_t bytes,
                  std::span<const std::byte>& input) {
    segment.reserve(offset, bytes);
    const auto part = input.first(std::min(bytes, input.size()));
    if (!part.empty()) std::memcpy(segment.data() + offset, part.data(), part.size());
    input = input.subspan(part.size());
  }

  Segment table_;
  Segment peers_;
  Segment mail_;
};

void read_events(const std::string& id) {
  const SystemEvents events = read_system_events(id);
  std::string trace;
  try {
    write_system_trace(events, 0, [&](std::string_view piece) { trace += piece; });
  } catch (const Error& error) {
    if (error.code() != Errc::not_found) throw;
    return;
  }
  const std::string fault = testing::TraceGrammar::fault_of(nlohmann::json::parse(trace));
  WEFT_CHECK(fault.empty(), fault);
}

void read(const std::string& id) {
  const SystemSnapshot system = read_actor_system(id);
  WEFT_CHECK(system.actors.size() <= kActorCountMax && system.meshes.size() <= kMeshCountMax);
  for (const SystemActor& actor : system.actors) {
    WEFT_CHECK(actor.mesh < system.meshes.size() && actor.box <= kLaneEntryCount);
    WEFT_CHECK(!actor.awaits || actor.awaits->row < system.actors.size());
  }
  for (const OpenMessages& open : system.open) WEFT_CHECK(open.row < system.actors.size());
  const Why why = explain_system(system, system, {.patience_s = 0});
  for (const Root& root : why.roots) WEFT_CHECK(!root.fix.empty() && !root.headline.empty());
  (void)to_text(why);
  (void)to_json(why);
  (void)system_tree_text(system);
  (void)system_json(system);
  read_events(id);
  const SystemBlocks blocks = read_system_blocks(system);
  (void)system_blocks_text(system, blocks);
  (void)system_blocks_json(system, blocks);
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string id = weft::testing::planted_job();
  weft::PlantedSystem planted(id);
  planted.put(std::as_bytes(std::span(data, size)));
  weft::read_or_refuse_segment([&] { weft::read(id); });
  planted.repair();
  weft::read_or_refuse_segment([&] { weft::read(id); });
  const auto held = weft::LifeLock::take(planted.table(), weft::kActorTableLifeByte);
  weft::read_or_refuse_segment([&] { weft::read(id); });
  return 0;
}
