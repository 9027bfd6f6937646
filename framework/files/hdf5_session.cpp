#include "framework/files/hdf5_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string_view>

#include "framework/error.h"

namespace antichain::hdf5 {
namespace {

// HDF5's driver for files in memory gets its memory from here: it is a string of ours, which the driver
// enlarges while it writes. So nothing is copied, and bytes that the driver skips are zero.
struct Memory {
  static void* resize(void*, size_t size, H5FD_file_image_op_t, void* bytes) try {
    static_cast<std::string*>(bytes)->resize(size);
    return static_cast<std::string*>(bytes)->data();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  static void* whole(size_t, H5FD_file_image_op_t, void* bytes) {
    return static_cast<std::string*>(bytes)->data();
  }
  static void* stay(void* to, const void*, size_t, H5FD_file_image_op_t, void*) { return to; }
  static herr_t keep(void*, H5FD_file_image_op_t, void*) { return 0; }
  static void* same(void* bytes) { return bytes; }
  static herr_t forget(void*) { return 0; }
};

void use_memory(hid_t access, std::string& bytes) {
  H5FD_file_image_callbacks_t calls{Memory::whole, Memory::stay,   Memory::resize, Memory::keep,
                                    Memory::same,  Memory::forget, &bytes};
  H5Pset_fapl_core(access, size_t(1) << 20, 0);
  H5Pset_file_image_callbacks(access, &calls);
}

// HDF5 takes files of one name for one file, even in memory, so each needs a new name.
std::string next_name() {
  static uint64_t count = 0;  // within a Session
  return fmt::format("memory-{}.h5", ++count);
}

constexpr std::string_view signature("\x89HDF\r\n\x1a\n", 8);

// Superblocks of version 0 and 1 have their version and the size of an address at these bytes. Four addresses
// follow the fixed part: of the file's base, its free space, its end, and its driver information.
constexpr size_t version_at = 8, address_size_at = 13, fixed_bytes_0 = 24, fixed_bytes_1 = 28;
constexpr size_t addresses_before_driver = 3, most_address_bytes = 32;

// Superblocks of version 2 and 3 have the file's size here.
constexpr size_t file_size_at = 28;

}  // namespace

std::mutex& Session::mutex() {
  static std::mutex one;
  return one;
}

hid_t create_group(hid_t parent, const char* name) {
  const Properties creation(H5Pcreate(H5P_GROUP_CREATE));
  H5Pset_obj_track_times(creation, 0);
  return H5Gcreate2(parent, name, H5P_DEFAULT, creation, H5P_DEFAULT);
}

std::string reason() {
  std::string text;
  const auto keep_last = [](unsigned, const H5E_error2_t* error, void* out) -> herr_t {
    if (error->desc) *static_cast<std::string*>(out) = error->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_last, &text);
  // The system's message is quoted within some lines of addresses and sizes.
  constexpr std::string_view quote = "error message = '";
  if (const size_t at = text.find(quote); at != std::string::npos) {
    text.erase(0, at + quote.size());
    text = text.substr(0, text.find('\''));
  }
  return text.empty() ? "" : fmt::format(" ({})", text);
}

void fail(const std::string& file, const std::string& what, const std::string& hint) {
  throw Error(fmt::format("{}: {}{}", file, what, reason()), hint);
}

hid_t create_in_memory(std::string& bytes, int64_t structure_bytes) {
  const Properties access(H5Pcreate(H5P_FILE_ACCESS)), creation(H5Pcreate(H5P_FILE_CREATE));
  use_memory(access, bytes);
  H5Pset_meta_block_size(access, hsize_t(structure_bytes));
  H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110);
  H5Pset_obj_track_times(creation, 0);
  H5Pset_link_creation_order(creation, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
  return written(H5Fcreate(next_name().c_str(), H5F_ACC_TRUNC, creation, access), "a file into memory");
}

hid_t open_in_memory(std::string& bytes, const std::string& origin) {
  refuse_driver_information(reads_memory(bytes), origin);
  const Properties access(H5Pcreate(H5P_FILE_ACCESS));
  use_memory(access, bytes);
  H5Pset_file_image(access, bytes.data(), bytes.size());
  const hid_t file = H5Fopen(next_name().c_str(), H5F_ACC_RDONLY, access);
  if (file < 0) fail(origin, "HDF5 can't open the file");
  return file;
}

hid_t written(hid_t id, const std::string& what) {
  if (id < 0) throw Error(fmt::format("HDF5 can't write {}{}", what, reason()), "", ExitCode::failure);
  return id;
}

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
