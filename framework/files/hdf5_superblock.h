// These functions read the superblock of an HDF5 file, its first structure, without the HDF5 library. Source:
// The HDF Group, "HDF5 File Format Specification", version 3, section II.A.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace antichain::hdf5 {

// Copies the bytes at `place` to `to`. Returns false where the file has fewer.
using ReadAt = std::function<bool(uint64_t place, std::span<char> to)>;

ReadAt reads_memory(const std::string& bytes);  // which must outlive the result

// Returns where the superblock begins: at 0, or after a user's block of 512, 1024, 2048 … bytes.
std::optional<uint64_t> find_superblock(const ReadAt& read);

// Throws Error naming `origin` when the superblock names a block of driver information, which only files of
// several parts have. The library believes the size that such a block claims: it allocates and fills up to
// 4 GiB before it looks at the block.
void refuse_driver_information(const ReadAt& read, const std::string& origin);

// Returns the file's size from a superblock of version 2 or 3 at its beginning. The driver's memory may end
// elsewhere.
uint64_t file_size(const std::string& bytes);

}  // namespace antichain::hdf5
