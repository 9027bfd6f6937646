// The files that see HDF5 share these: handles that close themselves, a lock for one thread at a time, and
// the library's own reason for a failure.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <mutex>
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

}  // namespace antichain::hdf5
