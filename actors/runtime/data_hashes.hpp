#pragma once
/// Hashes the data and state that a worker's loop uploads to its chips. The hashes must be equal on
/// all workers; hashes of local rows must be equal only on workers with the same rows.

#include <cstdint>
#include <span>
#include <string_view>

#include "actors/protocol/protocol.hpp"
#include "spmd/program/program.hpp"
#include "spmd/tensor/runtime.hpp"

namespace weft {

/// Selects the runs of a program whose data is compared. With other values than `never`, state is
/// compared whenever it is uploaded.
enum class DataChecks : std::uint8_t { never, first_and_seldom, always };

/// Parses WEFT_CHECK_DATA: "" (first_and_seldom), "0" (never) or "all". Throws invalid_argument for
/// another value.
DataChecks data_checks(std::string_view variable);

/// Returns whether the `run`-th run of a program, counted from 1, is compared. first_and_seldom
/// compares the runs 1, 2, 4, 8, ... and every 50th.
bool is_due(DataChecks checks, std::uint64_t run);

/// sampled_hash() is the XXH3 of all bytes if there are at most kHashedWhole. Otherwise it hashes
/// the number of bytes and the XXH3s of kHashedBlocks blocks of kHashedBlock bytes each, spread
/// evenly from the first byte to the last.
inline constexpr std::size_t kHashedWhole = std::size_t{1} << 20;
inline constexpr std::size_t kHashedBlock = 4096;
inline constexpr std::size_t kHashedBlocks = 256;
std::uint64_t sampled_hash(std::span<const std::byte> bytes);

/// Returns whether this run uploads state from the host or a file.
bool sets_state(const Program& program, std::span<const Binding> inputs);

/// Hashes the inputs from number `first` on, as far as they come from the host or a file. Labels
/// each hash with the input's name, type and source line. Hashes of state come first.
DataHashes hash_data(const Program& program, std::span<const Binding> inputs,
                     std::size_t first = 0);

}  // namespace weft
