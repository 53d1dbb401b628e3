#include <algorithm>
#include <utility>

#include <weft/data/transforms.hpp>
#include <weft/tensor/error.hpp>

#include "data/items/fields.hpp"
#include "data/items/words.hpp"

namespace weft {
namespace {

class Map : public Dataset {
 public:
  Map(DatasetPtr source, std::vector<Field> fields, MapFunction function, MapOptions options)
      : source_(std::move(source)),
        made_(std::move(fields)),
        function_(std::move(function)),
        name_(name_of_parts(options.name, {&source_, 1})),
        fields_(made_) {
    if (!function_) fail(Errc::invalid_argument, "{}: there is no function", name_);
    const std::vector<Field>& given = source_->fields();
    place_of_.resize(given.size(), kRead);
    for (const std::string& name : options.keep) {
      const auto found = std::ranges::find(given, name, &Field::name);
      if (found == given.end()) {
        fail(Errc::invalid_argument, "{}: there is no field '{}' to keep; there are: {}", name_,
             name, fields_text(given));
      }
      place_of_[static_cast<std::size_t>(found - given.begin())] = fields_.size();
      fields_.push_back(*found);
    }
    check_fields(name_, fields_);
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (place_of_[i] == kRead) read_fields_.push_back(given[i]);
    }
  }

  std::string name() const override { return name_; }
  std::int64_t size() const override { return source_->size(); }
  const std::vector<Field>& fields() const override { return fields_; }
  bool is_sequential() const override { return source_->is_sequential(); }
  std::string item_path(std::int64_t index) const override { return source_->item_path(index); }

 private:
  /// The entry of place_of_ for a field of the source that the map's items lack. Such a field is
  /// read into a buffer.
  static constexpr std::size_t kRead = static_cast<std::size_t>(-1);

  void read_item(const Item& item, ItemMemory out) const override {
    const ItemBuffer buffer(read_fields_);
    std::vector<std::span<std::byte>> given;
    std::size_t read = 0;
    for (const std::size_t place : place_of_) {
      given.push_back(place == kRead ? buffer.memory()[read++] : out[place]);
    }
    source_->read({item.index, item.epoch, inner_seed(item.seed, 0)}, given);
    ItemRandom random(item);
    function_({source_->fields(), given}, {made_, out.first(made_.size())}, random);
  }

  const DatasetPtr source_;
  const std::vector<Field> made_;
  const MapFunction function_;
  const std::string name_;
  std::vector<Field> fields_;
  std::vector<std::size_t> place_of_;  // for each field of the source, its index in fields_
  std::vector<Field> read_fields_;     // fields of the source that fields_ doesn't have
};

}  // namespace

DatasetPtr map(DatasetPtr source, std::vector<Field> fields, MapFunction function,
               MapOptions options) {
  check_parts(options.name, {&source, 1});
  return std::make_shared<const Map>(std::move(source), std::move(fields), std::move(function),
                                     std::move(options));
}

}  // namespace weft
