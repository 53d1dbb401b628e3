#pragma once
/// Hashes of the data and state that a worker's loop uploads to its chips. All workers must upload
/// the same; of a tensor of local rows, those that have the same part.

#include <cstdint>
#include <span>
#include <string_view>

#include "actors/protocol/protocol.hpp"
#include "spmd/program/program.hpp"
#include "spmd/tensor/runtime.hpp"

namespace weft {

/// The runs of a program whose data is compared. State is compared whenever it is uploaded.
enum class DataChecks : std::uint8_t { never, first_and_seldom, always };

/// From WEFT_CHECK_DATA: "" (first_and_seldom), "0" (never) or "all". Throws invalid_argument for
/// another word.
DataChecks data_checks(std::string_view variable);

/// Whether the `run`-th run of a program, from 1, is compared: first_and_seldom are 1, 2, 4, 8, ...
/// and each 50th.
bool is_due(DataChecks checks, std::uint64_t run);

/// XXH3 of all bytes up to kHashedWhole; beyond that, of kHashedBlocks blocks of kHashedBlock
/// bytes, evenly spread from the first byte to the last.
inline constexpr std::size_t kHashedWhole = std::size_t{1} << 20;
inline constexpr std::size_t kHashedBlock = 4096;
inline constexpr std::size_t kHashedBlocks = 256;
std::uint64_t sampled_hash(std::span<const std::byte> bytes);

/// Whether the host, or a file, sets state in this run.
bool sets_state(const Program& program, std::span<const Binding> inputs);

/// The inputs from `first` on that come from the host or a file, each with name, type and source
/// line; state first.
DataHashes hash_data(const Program& program, std::span<const Binding> inputs,
                     std::size_t first = 0);

}  // namespace weft
