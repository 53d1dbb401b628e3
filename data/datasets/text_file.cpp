#include <weft/data/text_files.hpp>

#include "data/datasets/text_lines.hpp"
#include "data/datasets/token_fields.hpp"
#include "data/items/fields.hpp"

namespace weft {
namespace {

class TextFile : public Dataset {
 public:
  TextFile(const std::string& path, const TokenField& tokens)
      : tokens_(tokens), lines_(path, EmptyLines::kept) {
    check_fields(path, tokens_.fields());
  }

  std::string name() const override { return lines_.file().path(); }
  std::int64_t size() const override { return lines_.size(); }
  const std::vector<Field>& fields() const override { return tokens_.fields(); }

 private:
  void read_item(const Item& item, ItemMemory out) const override {
    const std::string line = lines_.read(item.index);
    of_file(fmt::format("line {}", item.index + 1), [&] { tokens_.write(line, nullptr, out); });
  }

  const TokenFields tokens_;
  const TextLines lines_;
};

}  // namespace

DatasetPtr text_file(const std::string& path, const TokenField& tokens) {
  return std::make_shared<const TextFile>(path, tokens);
}

}  // namespace weft
