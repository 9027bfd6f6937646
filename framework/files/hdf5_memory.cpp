#include "framework/files/hdf5_memory.h"

#include <fmt/format.h>

#include <new>

#include "framework/error.h"
#include "framework/files/hdf5_session.h"
#include "framework/files/hdf5_superblock.h"

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

}  // namespace

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

}  // namespace antichain::hdf5
