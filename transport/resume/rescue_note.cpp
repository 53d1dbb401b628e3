#include "transport/resume/rescue_note.hpp"

#include <fstream>

#include <nlohmann/json.hpp>

#include "data/files/file_bytes.hpp"

namespace weft {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(RescueNote, step, path, continued_by)

namespace {

constexpr std::size_t kNoteBytesMax = 64 << 10;

}  // namespace

std::string rescue_note_in(const std::string& run_dir) { return run_dir + "/rescued.json"; }

void write_rescue_note(const std::string& file, const RescueNote& note) noexcept {
  try {
    std::ofstream(file) << nlohmann::json(note).dump(2, ' ', false,
                                                     nlohmann::json::error_handler_t::replace)
                        << '\n';
  } catch (const std::exception&) {
    // The note can't be written, for instance because the folder is gone or the disk is full.
  }
}

std::optional<RescueNote> read_rescue_note(const std::string& file) noexcept {
  try {
    const std::optional<std::string> text = find_file_text(file, kNoteBytesMax);
    if (!text) return {};
    return nlohmann::json::parse(*text).get<RescueNote>();
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace weft
