/// A model of the holds of published versions (published_format.hpp): one worker that publishes and
/// two readers, in every order of their steps. Mutants of the model must be found.

#include <gtest/gtest.h>

#include <array>
#include <compare>
#include <string>
#include <vector>

#include "tests/support/interleavings.hpp"

namespace weft::versions_model_test {
namespace {

constexpr int kPlaces = 3;
constexpr int kReaders = 2;
constexpr int kLastVersion = 5;

enum class Mutant {
  none,
  reader_looks_once,      ///< a reader doesn't check the version after it has set its bit
  reader_looks_first,     ///< a reader checks the version before it sets its bit
  worker_looks_first,     ///< the worker checks for holders before it removes the place's version
  worker_keeps_version,   ///< the worker doesn't remove the place's version
  newest_before_version,  ///< `newest` names a version before its bytes are written
};

struct Place {
  int version = 0;
  std::array<bool, kReaders> holders{};
  int bytes = 0;  ///< the version that the bytes belong to; 0 during a write
  auto operator<=>(const Place&) const = default;

  bool is_held() const { return holders[0] || holders[1]; }
};

enum class At { idle, chosen, looked, written, named };

struct Model {
  std::array<Place, kPlaces> places{};
  int newest_version = 1;
  int newest_place = 0;

  struct Worker {
    At at = At::idle;
    int version = 2;  ///< the version that is published next
    int place = 0;
    int before = 0;  ///< the version that was in the place
    auto operator<=>(const Worker&) const = default;
  } worker{};

  struct Reader {
    At at = At::idle;
    int version = 0;
    int place = 0;
    bool holds = false;
    auto operator<=>(const Reader&) const = default;
  };
  std::array<Reader, kReaders> readers{};

  auto operator<=>(const Model&) const = default;
};

void step_worker(const Model& now, Mutant mutant, std::vector<Model>& next) {
  if (now.worker.version > kLastVersion) return;
  Model after = now;
  Model::Worker& worker = after.worker;
  Place& place = after.places[static_cast<std::size_t>(worker.place)];
  switch (now.worker.at) {
    case At::idle:
      for (int i = 0; i < kPlaces; ++i) {
        if (i == now.newest_place) continue;
        Model chosen = now;
        Place& its = chosen.places[static_cast<std::size_t>(i)];
        chosen.worker.place = i;
        chosen.worker.before = its.version;
        if (mutant == Mutant::worker_looks_first && its.is_held()) continue;
        if (mutant != Mutant::worker_keeps_version && mutant != Mutant::worker_looks_first) {
          its.version = 0;
        }
        chosen.worker.at = At::chosen;
        next.push_back(chosen);
      }
      return;
    case At::chosen:
      if (mutant == Mutant::worker_looks_first) {
        place.version = 0;
        worker.at = At::looked;
      } else if (place.is_held()) {
        place.version = worker.before;
        worker.at = At::idle;
        ++worker.version;  // the version is skipped
      } else {
        worker.at = At::looked;
      }
      break;
    case At::looked:
      place.bytes = 0;
      if (mutant == Mutant::newest_before_version) {
        place.version = worker.version;
        after.newest_version = worker.version;
        after.newest_place = worker.place;
      }
      worker.at = At::written;
      break;
    case At::written:
      place.bytes = worker.version;
      worker.at = At::named;
      break;
    case At::named:
      place.version = worker.version;
      after.newest_version = worker.version;
      after.newest_place = worker.place;
      ++worker.version;
      worker.at = At::idle;
      break;
  }
  next.push_back(after);
}

void step_reader(const Model& now, std::size_t self, Mutant mutant, std::vector<Model>& next) {
  Model after = now;
  Model::Reader& reader = after.readers[self];
  Place& place = after.places[static_cast<std::size_t>(reader.place)];
  const auto looks = [&] {
    if (place.version == reader.version) return true;
    place.holders[self] = false;
    reader = {};
    return false;
  };
  switch (reader.at) {
    case At::idle:
      reader.version = now.newest_version;
      reader.place = now.newest_place;
      reader.at = At::chosen;
      break;
    case At::chosen:
      if (mutant == Mutant::reader_looks_first) {
        if (looks()) reader.at = At::looked;
      } else {
        place.holders[self] = true;
        reader.at = At::looked;
      }
      break;
    case At::looked:
      if (mutant == Mutant::reader_looks_first) {
        place.holders[self] = true;
      } else if (mutant != Mutant::reader_looks_once && !looks()) {
        break;
      }
      reader.holds = true;
      reader.at = At::written;
      break;
    default: place.holders[self] = false; reader = {};
  }
  next.push_back(after);
}

std::string fault_of(const Model& now, bool /*stuck*/) {
  for (const Model::Reader& reader : now.readers) {
    const Place& place = now.places[static_cast<std::size_t>(reader.place)];
    if (reader.holds && place.bytes != reader.version) {
      return "a version has other bytes while it is held";
    }
  }
  return "";
}

testing::Exploration explore_model(Mutant mutant) {
  Model initial;
  initial.places[0] = {.version = 1, .bytes = 1};
  std::vector<testing::ModelThread<Model>> threads;
  threads.push_back({"worker", [mutant](const Model& now, std::vector<Model>& next) {
                       step_worker(now, mutant, next);
                     }});
  for (std::size_t reader = 0; reader < kReaders; ++reader) {
    threads.push_back({"reader" + std::to_string(reader),
                       [mutant, reader](const Model& now, std::vector<Model>& next) {
                         step_reader(now, reader, mutant, next);
                       }});
  }
  return testing::explore<Model>(initial, threads, fault_of);
}

TEST(VersionsModel, NeverChangesAVersionThatIsHeld) {
  const testing::Exploration explored = explore_model(Mutant::none);
  EXPECT_EQ(explored.failure, "");
  EXPECT_GT(explored.state_count, 1000U);
}

TEST(VersionsModel, FindsEachMutant) {
  for (const Mutant mutant :
       {Mutant::reader_looks_once, Mutant::reader_looks_first, Mutant::worker_looks_first,
        Mutant::worker_keeps_version, Mutant::newest_before_version}) {
    EXPECT_NE(explore_model(mutant).failure, "") << static_cast<int>(mutant);
  }
}

}  // namespace
}  // namespace weft::versions_model_test
