// What the files that see HDF5 share: handles that close themselves, one thread at a time, and the library's
// own reason for a failure.
#pragma once

#include <hdf5.h>

#include <mutex>
#include <string>

namespace antichain::hdf5 {

// Closes what HDF5 gave, when the scope ends.
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

// The library is one for the process and not safe for threads, and prints its errors itself unless told not
// to: one thread at a time, and silence that ends with the call.
class Session {
 public:
  Session() : lock_(mutex()) {
    H5dont_atexit();  // no file of ours is left open, and after a damaged one it would complain
    H5open();
    H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Session() { H5Eset_auto2(H5E_DEFAULT, print_, data_); }
  Session(const Session&) = delete;

 private:
  static std::mutex& mutex();  // one of the process, wherever this header is included
  std::lock_guard<std::mutex> lock_;
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
};

// A group without dates: the same contents are the same bytes. Negative where HDF5 can't make it.
hid_t create_group(hid_t parent, const char* name);

// What HDF5 found at the bottom of the call that failed, " (in brackets)".
std::string reason();

}  // namespace antichain::hdf5
