/// Reads a file of JSON lines into items without a job, as a tool that prepares data does.

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>

#include <weft/data/text_files.hpp>
#include <weft/sharding/mesh.hpp>

int main() {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "weft-package-data";
  std::ofstream(path) << "{\"x\": 1.5}\n{\"x\": 2.5}\n";
  const weft::DatasetPtr numbers = weft::json_lines(path, {weft::JsonNumbers{.key = "x"}});
  float x = 0;
  const std::span<std::byte> field = std::as_writable_bytes(std::span(&x, 1));
  numbers->read({.index = 1}, std::span(&field, 1));
  const weft::Mesh mesh({2, 2}, {"data", "model"});
  std::printf("%lld items, the last %g; axis data has %lld\n",
              static_cast<long long>(numbers->size()), static_cast<double>(x),
              static_cast<long long>(mesh.axis_size("data")));
  std::filesystem::remove(path);
  return numbers->size() == 2 && x == 2.5F && mesh.axis_size("data") == 2 ? 0 : 1;
}
