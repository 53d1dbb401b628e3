#include "actors/runtime/program_listing.hpp"

#include <filesystem>
#include <fstream>
#include <span>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "actors/process/log.hpp"
#include "transport/format/plan_file.hpp"

namespace weft {
namespace {

void dump(const std::filesystem::path& dir, const std::string& name,
          std::span<const std::byte> bytes) {
  std::filesystem::create_directories(dir);
  std::ofstream out(dir / name, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) fail(Errc::io, "WEFT_DUMP_TO: can't write {}", (dir / name).string());
}

}  // namespace

void ProgramListing::log(const std::string& text) { logger("weft.worker")->info("{}", text); }

PassObserver ProgramListing::passes(std::uint32_t number) const {
  if (dir_.empty() && level_ < 3) return {};
  return [this, number, count = 0](std::string_view pass, const std::string& text) mutable {
    debug(3, [&] { return fmt::format("program {} after {}:\n{}", number, pass, text); });
    if (dir_.empty()) return;
    dump(dir_, fmt::format("program-{}.{}-{}.txt", number, count++, pass),
         std::as_bytes(std::span(text)));
  };
}

void ProgramListing::dump_plan(std::uint32_t number, const Plan& plan) const {
  if (!dir_.empty()) dump(dir_, fmt::format("plan-{}.weftplan", number), encode_plan(plan));
}

}  // namespace weft
