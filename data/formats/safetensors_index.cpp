#include "data/formats/safetensors.hpp"

#include <cstdint>
#include <set>
#include <string_view>
#include <utility>

#include <weft/tensor/error.hpp>

#include "data/formats/in_quotes.hpp"
#include "data/formats/strict_json.hpp"

namespace weft {
namespace {

constexpr std::string_view kWhat = "safetensors index";
constexpr std::string_view kMetadata = "metadata";
constexpr std::string_view kWeightMap = "weight_map";

bool is_plain_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

class IndexReader final : public StrictJson {
 public:
  IndexReader() : StrictJson(kWhat) {}

  bool null() override { return drop("null"); }
  bool boolean(bool value) override { return drop(value ? "true" : "false"); }
  bool number_integer(std::int64_t value) override { return drop(fmt::format("{}", value)); }
  bool number_unsigned(std::uint64_t value) override { return drop(fmt::format("{}", value)); }
  bool number_float(double value, const std::string&) override {
    return drop(fmt::format("{}", value));
  }
  bool string(std::string& value) override {
    if (inside_ != Inside::weight_map) return drop(in_quotes(value));
    if (!is_plain_file_name(value)) refuse(in_quotes(value));
    files.emplace(std::move(key_), std::move(value));
    return true;
  }
  bool start_object(std::size_t) override {
    if (inside_ == Inside::nothing) {
      inside_ = Inside::index;
    } else if (inside_ == Inside::index) {
      inside_ = key_ == kMetadata ? Inside::metadata : Inside::weight_map;
    } else {
      refuse("an object");
    }
    return true;
  }
  bool key(std::string& key) override {
    if (inside_ == Inside::index) {
      if (key != kMetadata && key != kWeightMap) {
        fail(Errc::corrupt, "{}: has the key {}; expected only {} and {}", kWhat, in_quotes(key),
             kMetadata, kWeightMap);
      }
      if (!keys_.insert(key).second) refuse_second("the index", key);
    } else if (inside_ == Inside::metadata) {
      if (!metadata_keys_.insert(key).second) refuse_second(kMetadata, key);
    } else {
      if (files.contains(key)) refuse_second(kWeightMap, key);
      if (key.empty()) fail(Errc::corrupt, "{}: a tensor's name is empty; give it one", kWhat);
    }
    key_ = std::move(key);
    return true;
  }
  bool end_object() override {
    if (inside_ == Inside::index && !keys_.contains(std::string(kWeightMap))) {
      fail(Errc::corrupt, "{}: has no {}, which names the file of each tensor", kWhat, kWeightMap);
    }
    inside_ = inside_ == Inside::index ? Inside::nothing : Inside::index;
    return true;
  }

  std::map<std::string, std::string> files;

 private:
  /// The object that contains the next value.
  enum class Inside { nothing, index, metadata, weight_map };

  bool drop(std::string_view value) const {
    if (inside_ != Inside::metadata) refuse(value);
    return true;
  }
  std::string place() const override {
    switch (inside_) {
      case Inside::nothing: return "the whole";
      case Inside::index: return key_;
      case Inside::metadata: return fmt::format("{}, key {}", kMetadata, in_quotes(key_));
      case Inside::weight_map: break;
    }
    return fmt::format("tensor {}", in_quotes(key_));
  }
  std::string_view expected() const override {
    switch (inside_) {
      case Inside::nothing:
      case Inside::index: return "an object";
      case Inside::metadata: return "a string, a number, true, false or null";
      case Inside::weight_map: break;
    }
    return "the plain name of a file beside the index, without a folder";
  }

  Inside inside_ = Inside::nothing;
  std::set<std::string> keys_;
  std::set<std::string> metadata_keys_;
  std::string key_;
};

}  // namespace

std::map<std::string, std::string> read_safetensors_index(std::span<const std::byte> json) {
  IndexReader reader;
  reader.read(json);
  return std::move(reader.files);
}

}  // namespace weft
