#include "tools/weft/progress_file.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace weft {

std::string head_and_tail(const std::string& path, std::streamoff bytes) {
  // A fifo would wait for its writer.
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return {};
  std::ifstream in(path, std::ios::binary);
  std::string text;
  if (!std::getline(in, text)) return {};
  text += '\n';
  const auto begin = in.tellg();
  in.seekg(0, std::ios::end);
  const auto size = in.tellg();
  in.seekg(std::max<std::streamoff>(begin, size - std::streampos(bytes)));
  std::ostringstream rest;
  rest << in.rdbuf();
  std::string tail = rest.str();
  if (size - begin > bytes) tail.erase(0, std::min(tail.find('\n'), tail.size() - 1) + 1);
  return text + tail;
}

}  // namespace weft
