#include "framework/files/hdf5_superblock.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "framework/error.h"

namespace antichain::hdf5 {
namespace {

constexpr std::string_view signature("\x89HDF\r\n\x1a\n", 8);

// Superblocks of version 0 and 1 have their version and the size of an address at these bytes. Four addresses
// follow the fixed part: of the file's base, its free space, its end, and its driver information.
constexpr size_t version_at = 8, address_size_at = 13, fixed_bytes_0 = 24, fixed_bytes_1 = 28;
constexpr size_t addresses_before_driver = 3, most_address_bytes = 32;

// Superblocks of version 2 and 3 have the file's size here.
constexpr size_t file_size_at = 28;

}  // namespace

ReadAt reads_memory(const std::string& bytes) {
  return [&bytes](uint64_t place, std::span<char> to) {
    if (place > bytes.size() || to.size() > bytes.size() - place) return false;
    std::memcpy(to.data(), bytes.data() + place, to.size());
    return true;
  };
}

std::optional<uint64_t> find_superblock(const ReadAt& read) {
  std::array<char, signature.size()> here;
  for (uint64_t at = 0; read(at, here); at = at == 0 ? 512 : 2 * at)
    if (std::string_view(here.data(), here.size()) == signature) return at;
  return std::nullopt;
}

void refuse_driver_information(const ReadAt& read, const std::string& origin) {
  const std::optional<uint64_t> start = find_superblock(read);
  std::array<char, fixed_bytes_0> fixed;
  if (!start || !read(*start, fixed)) return;  // the library says what is wrong with it
  const auto version = uint8_t(fixed[version_at]), address_bytes = uint8_t(fixed[address_size_at]);
  if (version > 1 || address_bytes > most_address_bytes) return;
  std::array<char, most_address_bytes> address;
  const std::span<char> driver(address.data(), address_bytes);
  const size_t fixed_bytes = version == 0 ? fixed_bytes_0 : fixed_bytes_1;
  if (!read(*start + fixed_bytes + addresses_before_driver * address_bytes, driver)) return;
  const bool has_none = std::ranges::all_of(driver, [](char byte) { return byte == '\xff'; });
  if (!has_none)
    throw Error(origin + ": the superblock names driver information, as files of several parts have it",
                "make it one file with h5repack, or the file is damaged");
}

uint64_t file_size(const std::string& bytes) {
  uint64_t size = 0;
  ANTICHAIN_CHECK(bytes.size() >= file_size_at + sizeof size, "HDF5 wrote a superblock");
  std::memcpy(&size, bytes.data() + file_size_at, sizeof size);
  return size;
}

}  // namespace antichain::hdf5
