#pragma once
/// RunCard: what a rescue needs to know about a job in addition to the memory of its chips. The
/// card is a file that outlives the job's processes.
///
///   run card file = envelope(RunCard)            (schema/run_card.fbs)

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <weft/sharding/mesh.hpp>

#include "data/files/envelope.hpp"

namespace weft {

inline constexpr Format kRunCardFormat{"run card", "weftcard", 1};
/// The maximum size of a run card's file in bytes.
inline constexpr std::size_t kRunCardBytesMax = std::size_t{1} << 20;

struct RunCard {
  Mesh mesh{{1}, {"data"}};
  int num_workers = 1;  ///< each worker drives the same number of chips, in order of ids
  std::uint64_t seed = 0;
  std::uint64_t begin_step = 0;  ///< the step at which the job began: a checkpoint's step, or 0
  std::string checkpoints{};     ///< the absolute path of the folder of the job's checkpoints
  double keep_for_rescue_s = 0;  ///< RunConfig::keep_for_rescue_s
  int fit_number = 1;            ///< position among the jobs of the trainer's process, from 1
  std::string job{};             ///< the job's id on all hosts; "": the id of its only memory
  int host = 0;                  ///< the host whose memory it is
  int num_hosts = 1;             ///< number of hosts; each has its own memory
  bool has_copies = false;       ///< whether each host stores its own copy of each checkpoint

  friend bool operator==(const RunCard&, const RunCard&) = default;
};

/// Encodes a run card. Throws invalid_argument for a card that decode_run_card() would refuse.
std::vector<std::byte> encode_run_card(const RunCard& card);
/// Decodes a run card. `bytes` is the complete file, 8-byte aligned. Throws version. Throws corrupt
/// if the number of chips of the mesh isn't a multiple of the number of workers, or if the hosts
/// contradict the mesh.
RunCard decode_run_card(std::span<const std::byte> bytes);

}  // namespace weft
