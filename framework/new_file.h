// A NewFile grows beside its final place and is moved there when it is whole: the final name never refers to
// a part of a file. It is made as mkstemp(3) makes one, exclusively and under a name that nobody can guess,
// so no link that somebody laid out there is followed. All files that replace others are written by this
// class.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "framework/file_handle.h"

namespace antichain {

class NewFile {
 public:
  // Throws Error with the system's reason, as all of these do.
  explicit NewFile(std::string target);
  ~NewFile();  // removes what was not committed
  NewFile(const NewFile&) = delete;

  const std::string& path() const { return path_; }  // where it grows
  std::string open_path() const;                     // the same file for a library that opens it by a name
  void write(std::string_view bytes);
  void commit();  // syncs and renames; a link that has the final name is replaced, not followed

 private:
  std::string target_, path_;
  FileHandle file_;
  bool committed_ = false;
};

// Removes files of this class that were to get one of these names in the folder, and whose process is no
// more. Only for a folder that one process at a time writes to: a process of another host can't be seen.
void remove_abandoned(const std::string& folder, std::span<const char* const> names);

// A GrowingFile takes text while a run lasts: its log, its metrics. What a full disk does not take is kept
// and written before the next text, so that such a moment ends nothing and leaves no gap.
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
