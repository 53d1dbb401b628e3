#include "bench/loader/pictures.hpp"

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>

#include <jpeglib.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/job.hpp"
#include "bench/machine.hpp"
#include "bench/python_child.hpp"

namespace weft::bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr unsigned kWidth = 500;
constexpr unsigned kHeight = 375;
constexpr int kClasses = 10;

/// Returns a JPEG of waves and noise. It has about 100 KB, like a photograph of the same size.
std::vector<unsigned char> draw_picture(unsigned seed) {
  std::minstd_rand random(seed + 1);
  std::vector<unsigned char> pixels;
  pixels.reserve(std::size_t{3} * kWidth * kHeight);
  for (unsigned y = 0; y < kHeight; ++y) {
    for (unsigned x = 0; x < kWidth; ++x) {
      for (unsigned channel = 0; channel < 3; ++channel) {
        const double wave =
            std::sin(0.013 * x * (1 + seed % 5)) * std::cos(0.017 * y) + 0.3 * channel;
        pixels.push_back(
            static_cast<unsigned char>(90 + 60 * wave + static_cast<double>(random() % 64)));
      }
    }
  }
  return pixels;
}

void write_picture(const fs::path& path, unsigned seed) {
  std::vector<unsigned char> pixels = draw_picture(seed);
  FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) fail(Errc::io, "{} can't be written", path.string());
  jpeg_compress_struct cinfo{};
  jpeg_error_mgr errors{};
  cinfo.err = jpeg_std_error(&errors);
  jpeg_create_compress(&cinfo);
  jpeg_stdio_dest(&cinfo, file);
  cinfo.image_width = kWidth;
  cinfo.image_height = kHeight;
  cinfo.input_components = 3;
  cinfo.in_color_space = JCS_RGB;
  jpeg_set_defaults(&cinfo);
  jpeg_set_quality(&cinfo, 90, TRUE);
  jpeg_start_compress(&cinfo, TRUE);
  while (cinfo.next_scanline < kHeight) {
    JSAMPROW row = pixels.data() + std::size_t{3} * kWidth * cinfo.next_scanline;
    jpeg_write_scanlines(&cinfo, &row, 1);
  }
  jpeg_finish_compress(&cinfo);
  jpeg_destroy_compress(&cinfo);
  std::fclose(file);
}

/// A temporary folder with pictures, which the destructor removes.
class PictureFolder {
 public:
  explicit PictureFolder(int pictures)
      : path_(fs::temp_directory_path() / fmt::format("weft-bench-pictures-{}", ::getpid())) {
    for (int i = 0; i < pictures; ++i) {
      const fs::path folder = path_ / fmt::format("class{}", i % kClasses);
      fs::create_directories(folder);
      write_picture(folder / fmt::format("{:05}.jpg", i), static_cast<unsigned>(i));
    }
  }
  PictureFolder(const PictureFolder&) = delete;
  PictureFolder& operator=(const PictureFolder&) = delete;
  ~PictureFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string path() const { return path_.string(); }

 private:
  const fs::path path_;
};

struct Pass {
  double images = 0;
  double wall_s = 0;
  double cpu_s = 0;
};

/// Returns the CPU time of all threads of this process.
double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

template <typename Read>
Pass time_pass(const Read& read) {
  const auto begin = Clock::now();
  const double cpu = cpu_seconds();
  Pass pass;
  pass.images = read();
  pass.wall_s = std::chrono::duration<double>(Clock::now() - begin).count();
  pass.cpu_s = cpu_seconds() - cpu;
  return pass;
}

Pass pass_of_weft(const std::string& folder, const PicturesOptions& options) {
  Pass pass;
  run_job(1, [&](TrainContext&) {
    const DatasetPtr pictures = image_folder(folder, {.image = {.mean = {0.485F, 0.456F, 0.406F},
                                                                .stddev = {0.229F, 0.224F, 0.225F},
                                                                .random_area = RandomArea{}}});
    DeviceLoader loader(pictures, {.batch_size = options.batch, .shuffle = true});
    pass = time_pass([&] {
      double images = 0;
      for (const Batch& batch : loader.all()) images += static_cast<double>(batch.num_items());
      return images;
    });
  });
  return pass;
}

Pass pass_of_decoder(const std::string& folder) {
  return time_pass([&] {
    double images = 0;
    std::vector<unsigned char> row(std::size_t{3} * kWidth);
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream stream(entry.path(), std::ios::binary);
      const std::string file{std::istreambuf_iterator<char>(stream), {}};
      jpeg_decompress_struct cinfo{};
      jpeg_error_mgr errors{};
      cinfo.err = jpeg_std_error(&errors);
      jpeg_create_decompress(&cinfo);
      jpeg_mem_src(&cinfo, reinterpret_cast<const unsigned char*>(file.data()), file.size());
      jpeg_read_header(&cinfo, TRUE);
      jpeg_start_decompress(&cinfo);
      JSAMPROW to = row.data();
      while (cinfo.output_scanline < cinfo.output_height) jpeg_read_scanlines(&cinfo, &to, 1);
      jpeg_finish_decompress(&cinfo);
      jpeg_destroy_decompress(&cinfo);
      ++images;
    }
    return images;
  });
}

Pass pass_of_torch(PythonChild& torch) {
  const nlohmann::json answer = torch.ask("epoch");
  return {answer.at("images"), answer.at("wall_s"), answer.at("cpu_s")};
}

constexpr const char* kWall = "images/s";
constexpr const char* kCpu = "per CPU s";

void add(std::vector<TableRow>& rows, const std::string& name, const Pass& pass) {
  row_of(rows, name + ", one thread", kWall).samples.push_back(pass.images / pass.wall_s);
  row_of(rows, name + ", one core", kCpu).samples.push_back(pass.images / pass.cpu_s);
}

}  // namespace

std::vector<TableRow> measure_pictures(const PicturesOptions& options) {
  const PictureFolder folder(options.pictures);
  std::optional<PythonChild> torch;
  if (PythonChild::has("torch, torchvision, PIL")) {
    torch.emplace("bench/loader/torch_pictures.py",
                  std::vector{folder.path(), fmt::to_string(options.batch)});
    (void)pass_of_torch(*torch);
  } else {
    fmt::print(stderr, "left out: torch: install Debian's python3-torch and python3-torchvision\n");
  }
  (void)pass_of_decoder(folder.path());  // reads the files into the page cache
  std::vector<TableRow> rows;
  for (int round = 0; round < options.rounds; ++round) {
    add(rows, "weft", pass_of_weft(folder.path(), options));
    if (torch) add(rows, "torch", pass_of_torch(*torch));
    add(rows, "libjpeg-turbo alone", pass_of_decoder(folder.path()));
  }
  for (TableRow& row : rows) {
    const TableRow& weft = row.unit == kWall ? rows[0] : rows[1];
    row.ratio = median(weft.samples) / median(row.samples);
  }
  return rows;
}

}  // namespace weft::bench
