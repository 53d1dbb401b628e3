/// What it takes to write a checkpoint and to read it, beside what the disk does for dd, in one
/// run.

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <weft/error.hpp>

#include "bench/machine.hpp"
#include "transport/storage/checkpoint_folder.hpp"
#include "transport/storage/checkpoint_reader.hpp"
#include "transport/storage/part_writer.hpp"
#include "transport/storage/work_crew.hpp"

namespace weft::bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr int kParts = 4;

struct Options {
  std::size_t mib = 1024;
  int rounds = 5;
  int threads = 4;
  std::string folder = ".";
};

double seconds(const std::function<void()>& work) {
  const auto begin = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void shell(const std::string& command) {
  if (std::system(command.c_str()) != 0) fail(Errc::io, "{} failed", command);
}

/// Parameters of 16 MiB, of which each of four chips has a quarter of the rows.
class State {
 public:
  explicit State(std::size_t mib) : num_tensors_(mib / 16), elements_(mib * kMiB / sizeof(float)) {
    for (std::size_t i = 0; i < elements_.size(); ++i) {
      elements_[i] = static_cast<float>((i * 2654435761U) % 1000003U);
    }
  }

  const std::vector<float>& elements() const { return elements_; }

  /// A part for each chip, one behind the other: `threads` are all that one host has.
  std::string save(const std::string& folder, std::uint64_t step, int threads) const {
    FileSystem& files = posix_file_system();
    CheckpointManifest manifest{.step = step, .mesh_shape = {kParts}, .axis_names = {"data"}};
    const std::string unfinished = begin_checkpoint(files, folder, step, "bench", 0);
    manifest.tensors.resize(num_tensors_);
    for (int part = 0; part < kParts; ++part) {
      std::vector<SourceShard> shards;
      for (std::size_t t = 0; t < num_tensors_; ++t) {
        const std::int64_t rows = kType.shape[0] / kParts;
        ShardHeader header{.name = fmt::format("layer{}.weight", t),
                           .type = kType,
                           .offsets = {part * rows, 0},
                           .dims = {rows, kType.shape[1]},
                           .mesh_coords = {part},
                           .step = step};
        manifest.tensors[t].name = header.name;
        manifest.tensors[t].type = kType;
        const float* first = elements_.data() +
                             static_cast<std::int64_t>(t) * kType.num_elements() +
                             part * rows * kType.shape[1];
        shards.push_back(
            {std::move(header), reinterpret_cast<const std::byte*>(first), {rows, kType.shape[1]}});
      }
      manifest.files.push_back(part_name(part, kParts));
      const std::atomic<bool> stop{false};
      const auto stored =
          write_part(files, unfinished + "/" + manifest.files.back(), shards,
                     {.threads = threads, .file = static_cast<std::uint32_t>(part)}, stop);
      for (std::size_t t = 0; t < num_tensors_; ++t) {
        manifest.tensors[t].shards.push_back(stored[t]);
      }
    }
    return commit_checkpoint(files, folder, unfinished, manifest);
  }

  void load(const std::string& checkpoint, std::vector<float>& to, int threads) const {
    const CheckpointManifest manifest = read_manifest(checkpoint);
    std::vector<WantedBox> wanted;
    for (std::size_t t = 0; t < num_tensors_; ++t) {
      float* first = to.data() + static_cast<std::int64_t>(t) * kType.num_elements();
      wanted.push_back({t, whole_box(kType.shape), reinterpret_cast<std::byte*>(first)});
    }
    (void)read_boxes(checkpoint, manifest, wanted, {.threads = threads});
  }

 private:
  const TensorType kType{DType::f32, {2048, 2048}};
  std::size_t num_tensors_;
  std::vector<float> elements_;
};

/// All of the files' bytes, to memory.
void read_files(const std::string& checkpoint, std::vector<float>& to, int threads) {
  std::vector<std::pair<int, off_t>> pieces;
  for (int part = 0; part < kParts; ++part) {
    const std::string path = checkpoint + "/" + part_name(part, kParts);
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    for (std::size_t at = 0; at < fs::file_size(path); at += kMiB) {
      pieces.emplace_back(file, static_cast<off_t>(at));
    }
  }
  auto* bytes = reinterpret_cast<std::byte*>(to.data());
  const std::size_t room = to.size() * sizeof(float) / kMiB;
  WorkCrew(threads).each(pieces.size(), [&](std::size_t i) {
    const auto [file, at] = pieces[i];
    if (::pread(file, bytes + (i % room) * kMiB, kMiB, at) < 0) fail(Errc::io, "read failed");
  });
  for (int part = 0; part < kParts; ++part) {
    const std::size_t first = pieces.size() / kParts * static_cast<std::size_t>(part);
    ::close(pieces[first].first);
  }
}

/// Drops the files from the page cache.
void forget(const std::string& checkpoint) {
  for (int part = 0; part < kParts; ++part) {
    const int file =
        ::open((checkpoint + "/" + part_name(part, kParts)).c_str(), O_RDONLY | O_CLOEXEC);
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    ::close(file);
  }
}

int run(const Options& options, const std::string& command) {
  const State state(options.mib);
  const std::string folder = options.folder + "/bench-checkpoint";
  const std::string plain = options.folder + "/bench-checkpoint.dd";
  const std::string source = fmt::format("/dev/shm/bench-checkpoint-{}", ::getpid());
  fs::create_directories(folder);
  shell(fmt::format("head -c {}M /dev/urandom > {}", options.mib, source));
  std::map<std::string, std::vector<double>> took;
  std::vector<float> loaded(state.elements().size());
  const auto dd = [&](const char* flags) {
    fs::remove(plain);
    shell(fmt::format("dd if={} of={} bs=1M conv=fsync {} status=none", source, plain, flags));
  };
  for (int round = 0; round < options.rounds; ++round) {
    took["write: dd"].push_back(seconds([&] { dd(""); }));
    took["write: dd, direct"].push_back(seconds([&] { dd("oflag=direct"); }));
    fs::remove(plain);
    std::string saved;
    took["write: weft"].push_back(seconds(
        [&] { saved = state.save(folder, static_cast<std::uint64_t>(round), options.threads); }));
    for (const char* cache : {"cold", "cached"}) {
      const bool is_cold = std::string_view(cache) == "cold";
      if (is_cold) forget(saved);
      took[fmt::format("read, {}: pread", cache)].push_back(
          seconds([&] { read_files(saved, loaded, options.threads); }));
      if (is_cold) forget(saved);
      took[fmt::format("read, {}: weft", cache)].push_back(
          seconds([&] { state.load(saved, loaded, options.threads); }));
    }
    if (loaded != state.elements()) fail(Errc::corrupt, "what was read isn't what was written");
    remove_checkpoint(posix_file_system(), saved);
  }
  fs::remove(source);
  fs::remove_all(folder);
  nlohmann::json report = describe_run(command);
  for (const auto& [name, samples] : took) report["seconds"][name] = summarize(samples);
  const double best_dd = std::min(median(took["write: dd"]), median(took["write: dd, direct"]));
  report["write_of_dd"] = best_dd / median(took["write: weft"]);
  for (const std::string cache : {"cold", "cached"}) {
    report["read_of_pread"][cache] =
        median(took["read, " + cache + ": pread"]) / median(took["read, " + cache + ": weft"]);
  }
  fmt::print("{}\n", report.dump(1));
  return 0;
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) {
  weft::bench::Options options;
  CLI::App app{"Writes and reads a checkpoint of four chips beside dd, in turn."};
  app.add_option("--mib", options.mib, "its size, a multiple of 16")->capture_default_str();
  app.add_option("--rounds", options.rounds)->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--threads", options.threads)->check(CLI::Range(1, 64))->capture_default_str();
  app.add_option("--folder", options.folder, "on the disk to be measured")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    return weft::bench::run(
        options, fmt::format("bench_checkpoint --mib {} --rounds {}", options.mib, options.rounds));
  } catch (const std::exception& e) {
    fmt::print(stderr, "bench_checkpoint: {}\n", e.what());
    return 1;
  }
}
