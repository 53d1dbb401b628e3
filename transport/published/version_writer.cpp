#include "transport/published/version_writer.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include <weft/tensor/error.hpp>

#include "transport/memory/life_lock.hpp"
#include "transport/memory/wait.hpp"

namespace weft {
namespace {

bool has_holders(const PlaceRow& row) {
  return std::ranges::any_of(row.holders, [](const auto& holders) {
    return holders.load(std::memory_order_seq_cst) != 0;
  });
}

}  // namespace

VersionWriter::VersionWriter(PublishedMemory& memory, int worker)
    : memory_(&memory), header_(&memory.header()), worker_(static_cast<std::uint32_t>(worker)) {
  WEFT_CHECK(worker_ < memory.worker_count(), worker_, memory.worker_count());
}

void VersionWriter::decide(std::uint64_t publication, std::uint64_t version) {
  const std::uint64_t newest = header_->newest.load(std::memory_order_acquire);
  if (newest == 0 || NewestVersion::of(newest).version < version) {
    if (const auto place = choose_place()) {
      header_->chosen_place.store(*place, std::memory_order_relaxed);
      header_->chosen_version.store(version, std::memory_order_relaxed);
      header_->chosen.store(publication, std::memory_order_relaxed);
    } else {
      header_->skipped.fetch_add(1, std::memory_order_relaxed);
    }
  }
  header_->decided.store(publication, std::memory_order_release);
  count_turn();
}

/// Returns a place that no reader holds, with 0 in its `version`, or nothing if readers hold all
/// places.
std::optional<std::uint32_t> VersionWriter::choose_place() {
  std::optional<std::uint32_t> place = find_free();
  if (!place) {
    release_dead_readers();
    place = find_free();
  }
  if (!place) return std::nullopt;
  try {
    memory_->reserve(*place);
  } catch (const Error& error) {
    const bool is_first = header_->newest.load(std::memory_order_relaxed) == 0;
    if (error.code() != Errc::no_space || is_first) throw;
    return std::nullopt;  // then only the places that have memory are used
  }
  return place;
}

/// Returns a place that no reader holds, or nothing. Tries the places that have memory first, from
/// the oldest version to the newest.
std::optional<std::uint32_t> VersionWriter::find_free() {
  struct Known {
    std::uint32_t place;
    bool is_new;
    std::uint64_t version;
  };
  const std::uint64_t newest = header_->newest.load(std::memory_order_acquire);
  std::array<Known, kVersionCountMax> known{};
  for (std::uint32_t place = 0; place < kVersionCountMax; ++place) {
    const PlaceRow& row = header_->places[place];
    known[place] = {.place = place,
                    .is_new = row.is_reserved.load(std::memory_order_relaxed) == 0,
                    .version = row.version.load(std::memory_order_relaxed)};
  }
  std::ranges::sort(known, [](const Known& a, const Known& b) {
    return std::pair(a.is_new, a.version) < std::pair(b.is_new, b.version);
  });
  for (const Known& each : known) {
    if (newest != 0 && NewestVersion::of(newest).place == each.place) continue;
    PlaceRow& row = header_->places[each.place];
    row.version.store(0, std::memory_order_seq_cst);
    if (!has_holders(row)) return each.place;
    row.version.store(each.version, std::memory_order_seq_cst);
  }
  return std::nullopt;
}

/// Clears the bits of readers whose processes have ended. Takes each dead reader's lock first, so
/// that no new reader can begin with its number meanwhile.
void VersionWriter::release_dead_readers() {
  for (std::uint32_t reader = 0; reader < kReaderCountMax; ++reader) {
    const std::uint64_t bit = std::uint64_t{1} << (reader % 64);
    const auto has_bit = [&](const PlaceRow& row) {
      return (row.holders[reader / 64].load(std::memory_order_relaxed) & bit) != 0;
    };
    if (std::ranges::none_of(header_->places, has_bit)) continue;
    const auto lock = LifeLock::take(memory_->ledger(), reader);
    if (!lock) continue;
    for (PlaceRow& row : header_->places) {
      row.holders[reader / 64].fetch_and(~bit, std::memory_order_seq_cst);
    }
  }
}

bool VersionWriter::is_decided(std::uint64_t publication) const {
  return header_->decided.load(std::memory_order_acquire) >= publication;
}

std::byte* VersionWriter::destination(std::uint64_t publication, std::uint64_t version) const {
  if (header_->chosen.load(std::memory_order_relaxed) != publication) return nullptr;
  const std::uint64_t chosen = header_->chosen_version.load(std::memory_order_relaxed);
  if (chosen != version) {
    fail(
        Errc::program_divergence,
        "worker {} publishes version {} where worker 0 publishes version {}: all workers must call "
        "publish() in the same steps",
        worker_, version, chosen);
  }
  return memory_->place(header_->chosen_place.load(std::memory_order_relaxed) % kVersionCountMax);
}

void VersionWriter::copied(std::uint64_t publication) {
  header_->copied[worker_].store(publication, std::memory_order_release);
  count_turn();
}

bool VersionWriter::publish(std::uint64_t publication, std::uint64_t version) {
  for (std::uint32_t worker = 0; worker < memory_->worker_count(); ++worker) {
    if (header_->copied[worker].load(std::memory_order_acquire) < publication) return false;
  }
  const NewestVersion newest{.version = version,
                             .place = header_->chosen_place.load(std::memory_order_relaxed)};
  header_->places[newest.place].version.store(version + 1, std::memory_order_seq_cst);
  header_->newest.store(newest.word(), std::memory_order_seq_cst);
  header_->published.fetch_add(1, std::memory_order_relaxed);
  header_->news.fetch_add(1, std::memory_order_seq_cst);
  wake_all(header_->news);
  return true;
}

std::uint32_t VersionWriter::turns() const {
  return header_->turns.load(std::memory_order_seq_cst);
}

void VersionWriter::wait_for_news(std::uint32_t seen, std::chrono::nanoseconds at_most) const {
  sleep_on(header_->turns, seen, at_most);
}

void VersionWriter::count_turn() {
  header_->turns.fetch_add(1, std::memory_order_seq_cst);
  wake_all(header_->turns);
}

}  // namespace weft
