// The files that see HDF5 share these: handles that close themselves, a lock for one thread at a time, the
// library's own reason for a failure, files in memory, and what is read of a file before the library sees it.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>

namespace antichain::hdf5 {

// Closes an HDF5 handle when the scope ends.
template <herr_t (*close)(hid_t)>
class Handle {
 public:
  explicit Handle(hid_t id) : id_(id) {}
  ~Handle() {
    if (id_ >= 0) close(id_);
  }
  Handle(const Handle&) = delete;
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
};
using File = Handle<H5Fclose>;
using Object = Handle<H5Oclose>;
using Space = Handle<H5Sclose>;
using Type = Handle<H5Tclose>;
using Properties = Handle<H5Pclose>;

// A Session locks the HDF5 library for one thread and silences it until the scope ends. The library exists
// once per process, is not safe for threads, and prints its errors unless it is told not to.
class Session {
 public:
  Session() : lock_(mutex()) {
    H5dont_atexit();  // no file of ours is left open, and after a damaged one the library would complain
    H5open();
    H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Session() { H5Eset_auto2(H5E_DEFAULT, print_, data_); }
  Session(const Session&) = delete;

 private:
  static std::mutex& mutex();  // one for the process, wherever this header is included
  std::lock_guard<std::mutex> lock_;
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
};

// Makes a group without dates, so that equal contents give equal bytes. The result is negative where HDF5
// can't make it.
hid_t create_group(hid_t parent, const char* name);

constexpr int64_t most_compression = 2000;  // deflate reaches 1,032

// Returns what HDF5 found in the innermost call that failed, as " (in brackets)".
std::string reason();

// Throws the error of a failed read: `file`, `what`, and HDF5's own reason.
[[noreturn]] void fail(const std::string& file, const std::string& what,
                       const std::string& hint = "the file is truncated or damaged");

// The functions below open files in memory. Call them within a Session.

// Makes a file that grows in `bytes`, in the format whose structures all have checksums (HDF5 1.10, 2016).
// Structures are allocated in blocks of `structure_bytes`.
hid_t create_in_memory(std::string& bytes, int64_t structure_bytes = 2048);

// Opens a file for reading only: nothing is written to `bytes`. Throws Error naming `origin` when HDF5 can't
// open it.
hid_t open_in_memory(std::string& bytes, const std::string& origin);

// Returns the handle of an object to write; throws Error where HDF5 could not make it.
hid_t written(hid_t id, const std::string& what);

// The functions below read the superblock of a file, its first structure, without the HDF5 library. Source:
// The HDF Group, "HDF5 File Format Specification", version 3, section II.A.

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
