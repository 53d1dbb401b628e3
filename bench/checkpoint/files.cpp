#include "bench/checkpoint/files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "bench/machine.hpp"
#include "bench/python_child.hpp"
#include "data/files/work_crew.hpp"
#include "transport/storage/checkpoint_folder.hpp"
#include "transport/storage/checkpoint_reader.hpp"
#include "transport/storage/part_writer.hpp"

namespace weft::bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr int kParts = 4;

double seconds(const std::function<void()>& work) {
  const auto begin = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void shell(const std::string& command) {
  if (std::system(command.c_str()) != 0) fail(Errc::io, "{} failed", command);
}

/// The state that is saved: parameters of 16 MiB each. Each of four chips has a quarter of the rows
/// of every parameter.
class State {
 public:
  explicit State(std::size_t mib) : num_tensors_(mib / 16), elements_(mib * kMiB / sizeof(float)) {
    for (std::size_t i = 0; i < elements_.size(); ++i) {
      elements_[i] = static_cast<float>((i * 2654435761U) % 1000003U);
    }
  }

  const std::vector<float>& elements() const { return elements_; }

  /// Writes the parts of all chips one after another. At any time, `threads` threads write, as on
  /// one host.
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

/// Reads all bytes of the checkpoint's files into memory, without verifying them.
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

/// Removes a file, or the files of a folder, from the page cache.
void forget(const std::string& path) {
  if (fs::is_directory(path)) {
    for (const auto& entry : fs::directory_iterator(path)) forget(entry.path().string());
    return;
  }
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  ::close(file);
}

/// Measures torch.save() and torch.load(), and the functions of safetensors, if they are installed.
class TorchFiles {
 public:
  TorchFiles(const FilesOptions& options, std::string path) : path_(std::move(path)) {
    if (!PythonChild::has("torch")) {
      fmt::print(stderr, "left out: torch, safetensors: install Debian's python3-torch\n");
      return;
    }
    python_.emplace("bench/checkpoint/torch_files.py", std::vector{fmt::to_string(options.mib)});
    formats_.emplace_back("torch", ".pt");
    if (PythonChild::has("safetensors.torch")) {
      formats_.emplace_back("safetensors", ".safetensors");
    } else {
      fmt::print(stderr, "left out: safetensors: /usr/bin/python3 has no such package\n");
    }
  }
  ~TorchFiles() {
    for (const auto& [name, suffix] : formats_) fs::remove(path_ + suffix);
  }
  TorchFiles(const TorchFiles&) = delete;
  TorchFiles& operator=(const TorchFiles&) = delete;

  void save(std::vector<TableRow>& rows) {
    for (const auto& [name, suffix] : formats_) {
      fs::remove(path_ + suffix);
      add(rows, fmt::format("write: {} + fsync", name), "save ", suffix);
    }
  }
  void load(std::vector<TableRow>& rows, bool is_cold) {
    for (const auto& [name, suffix] : formats_) {
      if (is_cold) forget(path_ + suffix);
      add(rows, fmt::format("read, {}: {}", is_cold ? "cold" : "cached", name), "load ", suffix);
    }
  }

 private:
  void add(std::vector<TableRow>& rows, const std::string& row, const std::string& what,
           const std::string& suffix) {
    row_of(rows, row, "s").samples.push_back(python_->ask(what + path_ + suffix).get<double>());
  }

  const std::string path_;
  std::optional<PythonChild> python_;
  // the names of the formats, and their file suffixes
  std::vector<std::pair<std::string, std::string>> formats_;
};

void set_ratios(std::vector<TableRow>& rows) {
  const auto median_of = [&](const std::string& name) {
    return median(row_of(rows, name, "s").samples);
  };
  const double dd = std::min(median_of("write: dd"), median_of("write: dd, direct"));
  for (TableRow& row : rows) {
    const bool is_cold = row.name.starts_with("read, cold");
    const double limit = row.name.starts_with("write") ? dd
                         : is_cold                     ? median_of("read, cold: pread")
                                                       : median_of("read, cached: pread");
    row.ratio = limit / median(row.samples);
  }
}

}  // namespace

std::vector<TableRow> measure_files(const FilesOptions& options) {
  const State state(options.mib);
  const std::string folder = options.folder + "/bench-checkpoint";
  const std::string plain = options.folder + "/bench-checkpoint.dd";
  const std::string source = fmt::format("/dev/shm/bench-checkpoint-{}", ::getpid());
  fs::create_directories(folder);
  shell(fmt::format("head -c {}M /dev/urandom > {}", options.mib, source));
  std::vector<TableRow> rows;
  std::vector<float> loaded(state.elements().size());
  TorchFiles torch(options, options.folder + "/bench-checkpoint");
  const auto time = [&](const std::string& name, const std::function<void()>& work) {
    row_of(rows, name, "s").samples.push_back(seconds(work));
  };
  const auto dd = [&](const char* flags) {
    shell(fmt::format("dd if={} of={} bs=1M conv=fsync {} status=none", source, plain, flags));
  };
  for (int round = 0; round < options.rounds; ++round) {
    fs::remove(plain);
    time("write: dd", [&] { dd(""); });
    fs::remove(plain);
    time("write: dd, direct", [&] { dd("oflag=direct"); });
    fs::remove(plain);
    std::string saved;
    time("write: weft",
         [&] { saved = state.save(folder, static_cast<std::uint64_t>(round), options.threads); });
    torch.save(rows);
    for (const std::string cache : {"cold", "cached"}) {
      const bool is_cold = cache == "cold";
      if (is_cold) forget(saved);
      time("read, " + cache + ": pread", [&] { read_files(saved, loaded, options.threads); });
      if (is_cold) forget(saved);
      time("read, " + cache + ": weft", [&] { state.load(saved, loaded, options.threads); });
      torch.load(rows, is_cold);
    }
    if (loaded != state.elements())
      fail(Errc::corrupt, "the bytes that were read differ from the bytes that were written");
    remove_checkpoint(posix_file_system(), saved);
  }
  fs::remove(source);
  fs::remove_all(folder);
  set_ratios(rows);
  return rows;
}

}  // namespace weft::bench
