#include "bench/loader/formats.hpp"

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/job.hpp"
#include "bench/machine.hpp"
#include "bench/python_child.hpp"

namespace weft::bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr const char* kTokenizer = WEFT_SOURCE_DIR "/tests/golden/tokenizers/bert_uncased.json";
constexpr std::int64_t kTextLength = 128;
constexpr std::int64_t kWindow = 1024;
constexpr std::int64_t kColumns = 32;

using Open = std::function<DatasetPtr(const std::string& folder)>;

DatasetPtr open_idx(const std::string&) {
  return zip({idx_file(FASHION_MNIST_DIR "/train-images-idx3-ubyte",
                       {.dtype = DType::f32, .scale = 1.0 / 255}),
              idx_file(FASHION_MNIST_DIR "/train-labels-idx1-ubyte", {.name = "y"})});
}

/// The function that opens each format. The keys are the names that the Python script uses.
const std::map<std::string, Open> kFormats{
    {"idx", open_idx},
    {"npy", [](const std::string& folder) { return npy_file(folder + "/rows.npy"); }},
    {"jpeg", [](const std::string& folder) { return image_folder(folder + "/jpeg"); }},
    {"png", [](const std::string& folder) { return image_folder(folder + "/png"); }},
    {"webp", [](const std::string& folder) { return image_folder(folder + "/webp"); }},
    {"tar",
     [](const std::string& folder) {
       return tar_files({folder + "/shard-0.tar", folder + "/shard-1.tar"},
                        {TarImage{}, TarNumber{}});
     }},
    {"csv",
     [](const std::string& folder) {
       return csv_file(folder + "/rows.csv", {.fields = {{.item_shape = {kColumns}}}});
     }},
    {"jsonl",
     [](const std::string& folder) {
       return json_lines(folder + "/texts.jsonl",
                         {JsonTokens{.tokens = {.tokenizer = Tokenizer::load(kTokenizer),
                                                .length = kTextLength,
                                                .pad_id = 0}},
                          JsonNumbers{.key = "label", .dtype = DType::i32}});
     }},
    {"tokens",
     [](const std::string& folder) {
       return token_file(folder + "/all.tokens", {.length = kWindow});
     }},
};

struct Epoch {
  double items = 0;
  double wall_s = 0;
  double sum = 0;  ///< the sum of the first field, if it was requested
};
enum class Asked : std::uint8_t { time, sum };

Epoch epoch_of_weft(const std::string& folder, const std::string& format, int threads, Asked asked,
                    const FormatsOptions& options) {
  Epoch epoch;
  run_job(1, [&](TrainContext&) {
    DeviceLoader loader(kFormats.at(format)(folder),
                        {.batch_size = options.batch, .num_threads = threads});
    const auto begin = Clock::now();
    for (const Batch& batch : loader.all()) {
      epoch.items += static_cast<double>(batch.num_items());
      if (asked == Asked::sum) epoch.sum += sum(cast(batch[0], DType::f32)).item();
    }
    epoch.wall_s = std::chrono::duration<double>(Clock::now() - begin).count();
  });
  return epoch;
}

Epoch epoch_of_torch(PythonChild& torch, const std::string& format, int workers, Asked asked) {
  const nlohmann::json answer =
      torch.ask(fmt::format("{} {}{}", format, workers, asked == Asked::sum ? " sum" : ""));
  return {answer.at("items"), answer.at("wall_s"), answer.at("sum")};
}

void compare(const std::string& format, const Epoch& weft, const Epoch& torch) {
  // The sums may differ a little, because picture decoders may differ in the last bits.
  constexpr double kTolerance = 2e-3;
  if (weft.items == torch.items &&
      std::abs(weft.sum - torch.sum) <= kTolerance * std::abs(torch.sum)) {
    return;
  }
  fail(Errc::corrupt, "{}: weft reads {} items with the sum {}, but torch reads {} with the sum {}",
       format, weft.items, weft.sum, torch.items, torch.sum);
}

/// A temporary folder that the destructor removes.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / fmt::format("weft-bench-formats-{}", ::getpid())) {
    fs::create_directories(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string path() const { return path_.string(); }

 private:
  const fs::path path_;
};

/// A reader of weft, and torch's reader for comparison.
struct Pair {
  std::string weft;
  int threads;
  std::string torch;
  int workers;
};
const Pair kPairs[] = {{"one thread", 1, "no workers", 0}, {"two threads", 2, "two workers", 2}};

void measure_format(const nlohmann::json& format, PythonChild& torch, const std::string& folder,
                    const FormatsOptions& options, std::vector<TableRow>& rows) {
  const std::string name = format.at("name");
  for (const Pair& pair : kPairs) {
    compare(name, epoch_of_weft(folder, name, pair.threads, Asked::sum, options),
            epoch_of_torch(torch, name, pair.workers, Asked::sum));
  }
  const auto items_of = [&](const std::string& way) -> TableRow& {
    return row_of(rows, fmt::format("{}: {}", name, way), "items/s");
  };
  const auto add = [&](const std::string& way, const Epoch& epoch) {
    items_of(way).samples.push_back(epoch.items / epoch.wall_s);
    row_of(rows, fmt::format("{}: {}, of files", name, way), "MB/s")
        .samples.push_back(format.at("bytes").get<double>() / 1e6 / epoch.wall_s);
  };
  for (int round = 0; round < options.rounds; ++round) {
    for (const Pair& pair : kPairs) {
      add("weft, " + pair.weft, epoch_of_weft(folder, name, pair.threads, Asked::time, options));
      add("torch, " + pair.torch, epoch_of_torch(torch, name, pair.workers, Asked::time));
    }
  }
  for (const Pair& pair : kPairs) {
    TableRow& weft = items_of("weft, " + pair.weft);
    weft.ratio = paired_ratio(weft, items_of("torch, " + pair.torch));
  }
}

}  // namespace

std::vector<TableRow> measure_formats(const FormatsOptions& options) {
  if (!fs::is_directory(options.torch + "/torch")) {
    fmt::print(stderr,
               "left out: formats: there is no PyTorch in '{}': /usr/bin/python3 -m pip install "
               "--target build/torch --no-deps torch==2.15.0 numpy pillow tokenizers "
               "typing_extensions sympy mpmath networkx jinja2 markupsafe filelock fsspec, and say "
               "--torch build/torch\n",
               options.torch);
    return {};
  }
  if (!fs::exists(FASHION_MNIST_DIR "/train-images-idx3-ubyte")) {
    fmt::print(stderr, "left out: idx: `tools/dev data fashion-mnist` gets Fashion-MNIST\n");
  }
  const Folder folder;
  PythonChild torch("bench/loader/torch_formats.py",
                    {options.torch, folder.path(), FASHION_MNIST_DIR, kTokenizer,
                     fmt::to_string(options.items), fmt::to_string(options.batch)});
  const nlohmann::json answer = torch.ask("formats");
  fmt::print("PyTorch {}\n", answer.at("torch").get<std::string>());
  std::vector<TableRow> rows;
  for (const nlohmann::json& format : answer.at("formats")) {
    measure_format(format, torch, folder.path(), options, rows);
  }
  return rows;
}

}  // namespace weft::bench
