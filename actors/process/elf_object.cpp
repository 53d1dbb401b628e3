#include "actors/process/elf_object.hpp"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <span>
#include <string_view>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

constexpr std::uint32_t kWeftNoteType = 1;
constexpr std::size_t kNoteBytesMax = 65536;

struct Note {
  std::string_view name;  ///< includes the terminating zero
  std::uint32_t type = 0;
  std::span<const std::byte> text;
};

/// Calls `visit` for each complete note of a PT_NOTE segment.
void each_note(std::span<const std::byte> segment, const std::function<void(const Note&)>& visit) {
  const auto padded = [](std::size_t size) { return (size + 3) & ~std::size_t{3}; };
  while (segment.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) head;
    std::memcpy(&head, segment.data(), sizeof head);
    const std::size_t name_bytes = padded(head.n_namesz);
    const std::size_t bytes = sizeof head + name_bytes + padded(head.n_descsz);
    if (bytes > segment.size()) return;
    const auto* name = reinterpret_cast<const char*>(segment.data() + sizeof head);
    visit({.name = {name, head.n_namesz},
           .type = head.n_type,
           .text = segment.subspan(sizeof head + name_bytes, head.n_descsz)});
    segment = segment.subspan(bytes);
  }
}

std::string build_id(std::span<const std::byte> segment) {
  std::string id;
  each_note(segment, [&](const Note& note) {
    if (note.type != NT_GNU_BUILD_ID || note.name != std::string_view("GNU\0", 4)) return;
    for (const std::byte byte : note.text) {
      id += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
    }
  });
  return id;
}

std::string describe_file(const std::string& path) {
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0) return "";
  return fmt::format("{}:{}:{}:{}.{:09}", file.st_dev, file.st_ino, file.st_size,
                     file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
}

std::string file_of(const ElfObject& object) {
  return object.path.empty() ? "/proc/self/exe" : object.path;
}

std::span<const std::byte> bytes_of(const dl_phdr_info& info, const ElfW(Phdr) & segment) {
  return {reinterpret_cast<const std::byte*>(info.dlpi_addr + segment.p_vaddr), segment.p_memsz};
}

/// Returns the path of the file that is mapped at the address. The loader's path isn't used: it may
/// be relative, and the program may have changed its folder since.
std::string mapped_path(std::uintptr_t base) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.starts_with(fmt::format("{:x}-", base)) && line.find('/') != line.npos) {
      return line.substr(line.find('/'));
    }
  }
  return "";
}

ElfObject describe(const dl_phdr_info& info) {
  ElfObject object{.path = info.dlpi_name, .base = info.dlpi_addr};
  if (!object.path.empty() && !object.path.starts_with('/')) {
    const std::string mapped = mapped_path(object.base);
    if (!mapped.empty()) object.path = mapped;
  }
  for (const ElfW(Phdr) & segment : std::span(info.dlpi_phdr, info.dlpi_phnum)) {
    if (segment.p_type == PT_NOTE) object.build += build_id(bytes_of(info, segment));
  }
  return object;
}

bool holds(const dl_phdr_info& info, std::uintptr_t address) {
  for (const ElfW(Phdr) & segment : std::span(info.dlpi_phdr, info.dlpi_phnum)) {
    const std::uintptr_t begin = info.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && address >= begin && address - begin < segment.p_memsz) {
      return true;
    }
  }
  return false;
}

/// Calls `visit` for each loaded object, the executable first, until `visit` returns true.
void each_object(const std::function<bool(const dl_phdr_info&)>& visit) {
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        const auto& call = *static_cast<const std::function<bool(const dl_phdr_info&)>*>(data);
        return call(*info) ? 1 : 0;
      },
      const_cast<void*>(static_cast<const void*>(&visit)));
}

/// An open file, which the destructor closes.
struct File {
  explicit File(const std::string& path) : fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd < 0) {
      fail(errno == ENOENT ? Errc::not_found : Errc::io, "can't open {}: {}", path,
           std::strerror(errno));
    }
  }
  ~File() { ::close(fd); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool read(void* into, std::size_t bytes, std::uint64_t offset) const {
    return ::pread(fd, into, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
  }
  int fd;
};

std::string build_id_of(const File& file) {
  ElfW(Ehdr) head{};
  if (!file.read(&head, sizeof head, 0) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) {
    return "";
  }
  std::string id;
  for (std::size_t i = 0; i < head.e_phnum; ++i) {
    ElfW(Phdr) segment{};
    if (!file.read(&segment, sizeof segment, head.e_phoff + i * head.e_phentsize)) return "";
    if (segment.p_type != PT_NOTE || segment.p_filesz > kNoteBytesMax) continue;
    std::vector<std::byte> bytes(segment.p_filesz);
    if (file.read(bytes.data(), bytes.size(), segment.p_offset)) id += build_id(bytes);
  }
  return id;
}

}  // namespace

std::optional<ElfObject> object_of(const void* address) {
  std::optional<ElfObject> found;
  each_object([&](const dl_phdr_info& info) {
    if (!holds(info, reinterpret_cast<std::uintptr_t>(address))) return false;
    found = describe(info);
    return true;
  });
  if (found && found->build.empty()) found->build = describe_file(file_of(*found));
  return found;
}

void require_build(const std::string& path, const std::string& build) {
  const File file(path);
  const bool has_no_id = build.find(':') != std::string::npos;
  const std::string here = has_no_id ? describe_file(path) : build_id_of(file);
  if (here == build) return;
  fail(Errc::version,
       "{} is build {:.12} in the trainer and {:.12} in the worker: the file changed while the "
       "application ran; start the application again",
       path, build, here.empty() ? "(none)" : here);
}

std::vector<std::uintptr_t> loaded_bases() {
  std::vector<std::uintptr_t> bases;
  each_object([&](const dl_phdr_info& info) {
    bases.push_back(info.dlpi_addr);
    return false;
  });
  return bases;
}

std::vector<WeftCopy> weft_copies() {
  std::vector<WeftCopy> copies;
  each_object([&](const dl_phdr_info& info) {
    for (const ElfW(Phdr) & segment : std::span(info.dlpi_phdr, info.dlpi_phnum)) {
      if (segment.p_type != PT_NOTE) continue;
      each_note(bytes_of(info, segment), [&](const Note& note) {
        if (note.type != kWeftNoteType || note.name != std::string_view("weft\0", 5)) return;
        WeftCopy copy{.object = describe(info)};
        std::int32_t entry = 0;  // relative to the address of this field
        if (note.text.size() < sizeof copy.abi + sizeof entry) return;
        std::memcpy(&copy.abi, note.text.data(), sizeof copy.abi);
        std::memcpy(&entry, note.text.data() + sizeof copy.abi, sizeof entry);
        copy.entry = reinterpret_cast<std::uintptr_t>(note.text.data()) + sizeof copy.abi +
                     static_cast<std::uintptr_t>(static_cast<std::intptr_t>(entry));
        copies.push_back(std::move(copy));
      });
    }
    return false;
  });
  return copies;
}

}  // namespace weft
