// A PartFile grows beside its final place and is moved there when it is whole: the final name never refers to
// a part of a file.
#pragma once

#include <string>

namespace antichain {

class PartFile {
 public:
  explicit PartFile(std::string target);
  ~PartFile();  // removes what was not committed
  PartFile(const PartFile&) = delete;
  const std::string& path() const { return path_; }  // where to write; synced by the writer
  void commit();                                     // renames; Error with the system's reason when it can't

 private:
  std::string target_, path_;
  bool committed_ = false;
};

}  // namespace antichain
