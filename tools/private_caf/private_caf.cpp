/// Writes copies of CAF's shared libraries, and of objects that use them, in which the namespace is
/// `wcf` instead of `caf`. libweft.so is linked with these copies, so it works in a program that
/// has another version of CAF (decision 0093).
///
///   private_caf FOLDER FILE...
///
/// A library's copy is named after its soname, with `wcf` for `caf`; beside it is a link for the
/// linker: from libcaf_core.so come libwcf_core.so.0.17.6 and libwcf_core.so. The copy of an object
/// file keeps its name.

#include <elf.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

namespace fs = std::filesystem;

/// A complete ELF file in memory. Its parts are changed in place.
class ElfFile {
 public:
  explicit ElfFile(const fs::path& path) : name_(path.string()) {
    std::ifstream in(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(in), {});
    check(in.good() || in.eof(), "can't be read");
    check(bytes_.size() >= sizeof(Elf64_Ehdr) && std::memcmp(bytes_.data(), ELFMAG, SELFMAG) == 0 &&
              bytes_[EI_CLASS] == ELFCLASS64,
          "isn't a 64-bit ELF file");
    constexpr char kOrder = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
    check(bytes_[EI_DATA] == kOrder, "has another byte order than this machine");
    const auto head = array<Elf64_Ehdr>(0, 1)[0];
    sections_ = array<Elf64_Shdr>(head.e_shoff, head.e_shnum);
  }

  const std::vector<char>& bytes() const { return bytes_; }
  std::span<Elf64_Shdr> sections() const { return sections_; }
  Elf64_Shdr* find(std::uint32_t type) const {
    const auto found = std::ranges::find(sections_, type, &Elf64_Shdr::sh_type);
    return found == sections_.end() ? nullptr : &*found;
  }
  template <typename T>
  std::span<T> contents(const Elf64_Shdr& section) {
    return array<T>(section.sh_offset, section.sh_size / sizeof(T));
  }
  Elf64_Shdr& section(std::size_t index) const {
    check(index < sections_.size(), "names a section that it hasn't");
    return sections_[index];
  }
  std::string_view text(const Elf64_Shdr& strings, std::size_t offset) {
    const std::span<char> all = contents<char>(strings);
    check(offset < all.size() && all.back() == '\0', "has a name without an end");
    return all.data() + offset;
  }
  void check(bool is_right, const char* fault) const {
    if (!is_right) throw std::runtime_error(name_ + " " + fault);
  }

 private:
  template <typename T>
  std::span<T> array(std::size_t offset, std::size_t count) {
    check(offset <= bytes_.size() && count <= (bytes_.size() - offset) / sizeof(T) &&
              offset % alignof(T) == 0,
          "has a section outside of the file");
    return {reinterpret_cast<T*>(bytes_.data() + offset), count};
  }

  std::string name_;
  std::vector<char> bytes_;
  std::span<Elf64_Shdr> sections_;
};

/// Renames the libraries ("libcaf_"), and the namespace in mangled names, where it is "3caf". A
/// digit before "3caf" would make it part of a longer name.
void rename(std::span<char> strings) {
  const std::string_view all(strings.data(), strings.size());
  for (const std::string_view old : {std::string_view("3caf"), std::string_view("libcaf_")}) {
    const std::size_t caf = old.find("caf");
    for (auto at = all.find(old); at != all.npos; at = all.find(old, at + 1)) {
      if (at > 0 && old[0] == '3' && all[at - 1] >= '0' && all[at - 1] <= '9') continue;
      std::memcpy(strings.data() + at + caf, "wcf", 3);
    }
  }
}

std::uint32_t gnu_hash(std::string_view name) {
  std::uint32_t hash = 5381;
  for (const char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
  return hash;
}

/// Moves symbol i to index new_place[i] in all relocations.
void renumber(ElfFile& file, std::span<const std::uint32_t> new_place) {
  for (const Elf64_Shdr& section : file.sections()) {
    if (section.sh_type != SHT_RELA) continue;
    for (Elf64_Rela& relocation : file.contents<Elf64_Rela>(section)) {
      const std::size_t symbol = ELF64_R_SYM(relocation.r_info);
      file.check(symbol < new_place.size(), "has a relocation by an unknown symbol");
      relocation.r_info = ELF64_R_INFO(static_cast<std::uint64_t>(new_place[symbol]),
                                       ELF64_R_TYPE(relocation.r_info));
    }
  }
}

/// Sorts the exported symbols by the hashes of their new names, and writes the table of hashes
/// again.
void rehash(ElfFile& file) {
  Elf64_Shdr* const table = file.find(SHT_GNU_HASH);
  Elf64_Shdr* const dynsym = file.find(SHT_DYNSYM);
  file.check(table != nullptr && dynsym != nullptr && file.find(SHT_HASH) == nullptr,
             "isn't linked with --hash-style=gnu");
  const std::span<Elf64_Sym> symbols = file.contents<Elf64_Sym>(*dynsym);
  const Elf64_Shdr& strings = file.section(dynsym->sh_link);
  const std::span<std::uint32_t> words = file.contents<std::uint32_t>(*table);
  file.check(words.size() >= 4, "has a short table of hashes");
  const std::uint32_t buckets = words[0], first = words[1], filters = words[2], shift = words[3];
  file.check(buckets > 0 && filters > 0 && first <= symbols.size() && shift < 32 &&
                 words.size() >= 4 + 2 * std::size_t{filters} + buckets + symbols.size() - first,
             "has a faulty table of hashes");

  std::vector<std::uint32_t> hashes(symbols.size());
  std::vector<std::uint32_t> order(symbols.size());  // order[new index] = old index
  std::iota(order.begin(), order.end(), 0U);
  for (std::size_t i = first; i < symbols.size(); ++i) {
    hashes[i] = gnu_hash(file.text(strings, symbols[i].st_name));
  }
  std::stable_sort(order.begin() + first, order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return hashes[a] % buckets < hashes[b] % buckets;
  });
  std::vector<std::uint32_t> new_place(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) new_place[order[i]] = i;

  const std::vector<Elf64_Sym> old_symbols(symbols.begin(), symbols.end());
  for (std::size_t i = 0; i < order.size(); ++i) symbols[i] = old_symbols[order[i]];
  if (const Elf64_Shdr* const versions = file.find(SHT_GNU_versym)) {
    const std::span<Elf64_Half> numbers = file.contents<Elf64_Half>(*versions);
    file.check(numbers.size() == order.size(), "has a version table of another length");
    const std::vector<Elf64_Half> old_numbers(numbers.begin(), numbers.end());
    for (std::size_t i = 0; i < order.size(); ++i) numbers[i] = old_numbers[order[i]];
  }
  renumber(file, new_place);

  std::vector<std::uint64_t> filter(filters);
  const std::span<std::uint32_t> bucket = words.subspan(4 + 2 * std::size_t{filters}, buckets);
  const std::span<std::uint32_t> chain = words.subspan(4 + 2 * std::size_t{filters} + buckets);
  std::ranges::fill(bucket, 0U);
  for (std::uint32_t i = first; i < order.size(); ++i) {
    const std::uint32_t hash = hashes[order[i]];
    filter[hash / 64 % filters] |=
        (std::uint64_t{1} << (hash % 64)) | (std::uint64_t{1} << ((hash >> shift) % 64));
    if (bucket[hash % buckets] == 0) bucket[hash % buckets] = i;
    const bool is_last = i + 1 == order.size() || hashes[order[i + 1]] % buckets != hash % buckets;
    chain[i - first] = is_last ? hash | 1U : hash & ~1U;
  }
  std::memcpy(words.data() + 4, filter.data(), filter.size() * sizeof(std::uint64_t));
}

std::string soname_of(ElfFile& file) {
  Elf64_Shdr* const dynamic = file.find(SHT_DYNAMIC);
  file.check(dynamic != nullptr, "has no dynamic section");
  for (const Elf64_Dyn& entry : file.contents<Elf64_Dyn>(*dynamic)) {
    if (entry.d_tag == DT_SONAME) {
      return std::string(file.text(file.section(dynamic->sh_link), entry.d_un.d_val));
    }
  }
  file.check(false, "has no soname");
  return {};
}

void copy(const fs::path& from, const fs::path& folder) {
  ElfFile file(from);
  const bool is_object = file.find(SHT_DYNSYM) == nullptr;
  for (const Elf64_Shdr& section : file.sections()) {
    if (section.sh_type == (is_object ? SHT_SYMTAB : SHT_DYNSYM)) {
      rename(file.contents<char>(file.section(section.sh_link)));
    }
  }
  fs::path to = folder / from.filename();
  if (!is_object) {
    rehash(file);
    to = folder / soname_of(file);
  }
  std::ofstream out(to, std::ios::binary | std::ios::trunc);
  out.write(file.bytes().data(), static_cast<std::streamsize>(file.bytes().size()));
  out.close();
  file.check(out.good(), "can't be copied");
  if (is_object) return;
  const std::string name = to.filename().string();
  const fs::path link = folder / (name.substr(0, name.find(".so")) + ".so");
  if (link == to) return;
  fs::remove(link);
  fs::create_symlink(name, link);
}

}  // namespace

int main(int argc, char** argv) try {
  const std::span<char*> arguments(argv, static_cast<std::size_t>(argc));
  if (argc < 3) throw std::runtime_error("usage: private_caf FOLDER FILE...");
  fs::create_directories(arguments[1]);
  for (const char* const file : arguments.subspan(2)) copy(file, arguments[1]);
  return 0;
} catch (const std::exception& error) {
  std::cerr << "private_caf: " << error.what() << "\n";
  return 1;
}
