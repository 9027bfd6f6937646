// A GrowingFile takes text while a run lasts: its log, its metrics. What a full disk does not take is kept
// and written before the next text, so that such a moment ends nothing and leaves no gap.
#pragma once

#include <string>
#include <string_view>

#include "framework/file_handle.h"

namespace antichain {

class GrowingFile {
 public:
  // Begins a new file in place of what has the name, or goes on with a plain file that has it. Follows no
  // link. Throws Error with the system's reason.
  GrowingFile(const std::string& file, bool append);
  // Returns whether the file has all text now.
  bool add(std::string_view text);
  // Tries once more. Returns why the end of the text is not in the file, or "".
  std::string lost();

 private:
  FileHandle file_;
  std::string waiting_;
  int error_ = 0;  // errno of the last failure
};

}  // namespace antichain
