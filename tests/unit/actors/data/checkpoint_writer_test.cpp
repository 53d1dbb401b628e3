#include "actors/data/checkpoint_writer.hpp"

#include <array>
#include <filesystem>
#include <mutex>

#include <gtest/gtest.h>

#include <weft/tensor/error.hpp>

#include "actors/supervision/checkpoint_tally.hpp"
#include "tests/support/checkpoint_world.hpp"
#include "tests/support/watched_files.hpp"
#include "transport/storage/checkpoint_folder.hpp"
#include "transport/storage/checkpoint_reader.hpp"

namespace weft::checkpoint_writer_test {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;
using testing::WatchedFiles;

constexpr int kWorkers = 2;
constexpr std::int64_t kElements = 1000;  // the number of elements of each worker

/// Does the trainer's part of each save.
class Saves {
 public:
  Saves() {
    for (auto& permits : permits_) permits->start({});
  }
  const std::shared_ptr<Permits>& permits(int worker) const {
    return permits_[static_cast<std::size_t>(worker)];
  }
  void part_written(const PartWritten& part) {
    const std::lock_guard lock(mutex_);
    carry_out(tally_.part_written(part));
  }
  void save_ended(const SaveEnded& ended) {
    const std::lock_guard lock(mutex_);
    carry_out(tally_.save_ended(ended));
  }

 private:
  void carry_out(const Actions& actions) {
    for (const Action& action : actions) {
      for (const auto& permits : permits_) {
        if (const auto* drop = std::get_if<action::DropParts>(&action)) {
          permits->drop_parts(drop->generation, drop->save);
        } else if (const auto* saved = std::get_if<action::TellSaved>(&action)) {
          permits->saved(saved->ended);
        } else if (const auto* join = std::get_if<action::JoinParts>(&action)) {
          if (permits == permits_[0]) permits->join_parts(join->generation, join->save);
        }
      }
    }
  }

  std::mutex mutex_;
  CheckpointTally tally_{kWorkers};
  static std::shared_ptr<Permits> make(int worker) {
    return std::make_shared<Permits>(worker, std::chrono::seconds(60));
  }
  const std::array<std::shared_ptr<Permits>, kWorkers> permits_{make(0), make(1)};
};

class SaveLink : public WorkerLink {
 public:
  SaveLink(Saves& saves, int worker) : WorkerLink(saves.permits(worker)), saves_(saves) {}
  void part_written(const PartWritten& part) override { saves_.part_written(part); }
  void save_ended(const SaveEnded& ended) override { saves_.save_ended(ended); }

  Assignment join(const JoinRequest&) override { return {}; }
  void show_program(const ProgramSeen&) override {}
  void want_lease(std::uint64_t) override {}
  void report(const Report&) override {}
  void preempt(const std::string&) override {}
  void state_hashed(const StateHashes&) override {}
  void data_hashed(const DataHashes&) override {}
  void commands_read(const CommandsRead&) override {}
  void awaits_commands(const CommandsAwaited&) override {}
  void loop_ended(const LoopEnded&) override {}
  void unwound(std::uint64_t, std::uint64_t) override {}
  void wires_listen(const WireAddresses&) override {}
  void wire_lost(const WireLost&) override {}
  std::unique_ptr<DeviceLink> start_device(std::unique_ptr<Engine>, const Recorder&, int,
                                           DeviceFailed) override {
    return nullptr;
  }

 private:
  Saves& saves_;
};

/// A job of two workers that keeps only its newest checkpoint. After begin_failing(), call number
/// `fails` to the file system by worker `victim` fails.
class SavingJob {
 public:
  SavingJob(std::string folder, int victim, std::uint64_t fails, Errc code)
      : folder_(std::move(folder)), victim_(victim), fails_(fails), code_(code) {
    for (int worker = 0; worker < kWorkers; ++worker) {
      files_.push_back(std::make_unique<WatchedFiles>(
          [this, worker](const char* call, std::uint64_t) { note(worker, call); }));
      links_.push_back(std::make_unique<SaveLink>(saves_, worker));
      writers_.push_back(std::make_unique<CheckpointWriter>(
          *links_.back(),
          CheckpointWriterOptions{.worker = worker,
                                  .part = worker,
                                  .num_parts = kWorkers,
                                  .owner = "job",
                                  .config = {.path = folder_, .max_to_keep = 1},
                                  .files = files_.back().get()},
          [](std::uint64_t) {}));
    }
  }

  SaveEnded save(std::uint64_t step) {
    std::vector<std::shared_ptr<HeldBuffers>> holds;
    for (int worker = 0; worker < kWorkers; ++worker) {
      PartJob job = part_of(worker, step);
      holds.push_back(job.held);
      writers_[static_cast<std::size_t>(worker)]->write(std::move(job));
    }
    SaveEnded ended = saves_.permits(1)->wait_saved(step);
    EXPECT_EQ(saves_.permits(0)->wait_saved(step).error, ended.error);
    for (const auto& held : holds) EXPECT_TRUE(held->is_over) << "what is held is freed";
    return ended;
  }
  void begin_failing() { is_failing_ = true; }
  /// Ends the writers, after they have written everything.
  void end() { writers_.clear(); }
  const std::string& failed() const { return failed_; }

 private:
  /// Returns a worker's part: row `worker` of a tensor.
  PartJob part_of(int worker, std::uint64_t step) const {
    const TensorType type{DType::f32, {kWorkers, kElements}};
    const auto row = std::make_shared<std::vector<float>>(static_cast<std::size_t>(kElements),
                                                          static_cast<float>(step));
    PartJob job{.save = step,
                .table = {.step = step,
                          .mesh_shape = {kWorkers},
                          .axis_names = {"data"},
                          .tensors = {{.name = "w", .type = type}}}};
    job.shards.push_back({.header = {.name = "w",
                                     .type = type,
                                     .offsets = {worker, 0},
                                     .dims = {1, kElements},
                                     .mesh_coords = {worker},
                                     .step = step},
                          .elements = reinterpret_cast<const std::byte*>(row->data()),
                          .room = {1, kElements}});
    job.tensors.push_back(0);
    job.memory.emplace_back(row, job.shards.back().elements);
    job.held = std::make_shared<HeldBuffers>(true);
    return job;
  }
  void note(int worker, const char* call) {
    if (!is_failing_ || worker != victim_ || ++calls_ != fails_) return;
    failed_ = call;
    fail(code_, "{}: injected", call);
  }

  const std::string folder_;
  const int victim_;
  const std::uint64_t fails_;
  const Errc code_;
  std::atomic<bool> is_failing_{false};
  std::atomic<std::uint64_t> calls_{0};
  std::string failed_;
  Saves saves_;
  std::vector<std::unique_ptr<WatchedFiles>> files_;
  std::vector<std::unique_ptr<SaveLink>> links_;
  std::vector<std::unique_ptr<CheckpointWriter>> writers_;
};

std::vector<std::uint64_t> whole_steps(const std::string& folder) {
  std::vector<std::uint64_t> steps;
  for (const CheckpointEntry& entry : list_checkpoints(folder)) {
    steps.push_back(entry.step);
    EXPECT_TRUE(verify_checkpoint(entry.path, read_manifest(entry.path)).empty()) << entry.path;
  }
  return steps;
}

void expect_nothing_unfinished(const std::string& folder, const std::string& when) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(".tmp")) << when << entry.path();
  }
}

/// Each call to the file system by either worker fails in turn, in the save or in the removal of
/// the previous checkpoint.
TEST(CheckpointWriter, AFailedCallLeavesAWholeCheckpointAndNothingElse) {
  int points = 0;
  for (const Errc code : {Errc::io, Errc::no_space}) {
    for (int victim = 0; victim < kWorkers; ++victim) {
      bool has_failed = true;
      for (std::uint64_t fails = 1; has_failed; ++fails) {
        const TemporaryFolder folder;
        SaveEnded ended;
        std::string failed;
        {
          SavingJob job(folder.path(), victim, fails, code);
          ASSERT_EQ(job.save(1).error, 0);
          job.begin_failing();
          ended = job.save(2);
          job.end();
          failed = job.failed();
        }
        const std::string when = fmt::format("call {} of worker {}, {}: ", fails, victim, failed);
        EXPECT_FALSE(whole_steps(folder.path()).empty()) << when;
        if (ended.error != 0) {
          EXPECT_EQ(ended.error, static_cast<std::uint8_t>(code)) << when << ended.message;
          EXPECT_NE(ended.message.find("injected"), std::string::npos) << when << ended.message;
        }
        EXPECT_EQ(SavingJob(folder.path(), -1, 0, code).save(3).error, 0) << when;
        has_failed = !failed.empty();
        points += has_failed ? 1 : 0;
        EXPECT_EQ(whole_steps(folder.path()), std::vector<std::uint64_t>{3}) << when;
        expect_nothing_unfinished(folder.path(), when);
      }
    }
  }
  EXPECT_GE(points, 50);
}

/// Parts of a failed save can't be read, and would fill the disk.
TEST(CheckpointWriter, NothingIsLeftOfASaveThatFailed) {
  for (int victim = 0; victim < kWorkers; ++victim) {
    const TemporaryFolder folder;
    std::uint64_t fails = 0;
    for (bool is_in_save = true; is_in_save;) {
      fs::remove_all(folder.path());
      SaveEnded ended;
      {
        SavingJob job(folder.path(), victim, ++fails, Errc::no_space);
        ASSERT_EQ(job.save(1).error, 0);
        job.begin_failing();
        ended = job.save(2);
      }
      is_in_save = ended.error != 0;
      const std::string when = fmt::format("call {} of worker {}: ", fails, victim);
      EXPECT_FALSE(whole_steps(folder.path()).empty()) << when;
      expect_nothing_unfinished(folder.path(), when);
    }
    EXPECT_GT(fails, 3U);
  }
}

}  // namespace
}  // namespace weft::checkpoint_writer_test
