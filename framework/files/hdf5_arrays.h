// Arrays in HDF5 files that are too large for memory: read and written by rows. (Weights, which fit, are
// framework/files/hdf5.h's.)
//
// The library itself is trusted with a file's structure; what a structure claims is checked against the
// file's size before anything is made of it: no array has more bytes than are stored, none lies in another
// file, none needs a filter but the library's own (deflate, shuffle, fletcher32).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace antichain {

enum class ArrayType { u8, i64, f32 };

struct ArraySpec {
  std::string path;            // "train/images": its group is made
  std::vector<int64_t> shape;  // rows first
  ArrayType type = ArrayType::u8;
  bool compressed = false;  // each row by itself, so that any one is read alone
  int64_t row_bytes() const;
};

// At the root of the file.
struct Attribute {
  std::string name;
  std::variant<std::string, std::vector<std::string>, std::vector<double>> value;
};

// Writes `file`, from nothing. What is written is hashed on the way, and read back by finish(): HDF5 does not
// tell every failure of a full disk.
class ArrayWriter {
 public:
  ArrayWriter(const std::string& file, std::vector<ArraySpec>);
  ~ArrayWriter();
  void set(const Attribute&);
  // The next `bytes.size() / row_bytes()` rows. Error naming the file when they can't be written.
  void append(size_t array, std::span<const std::byte> bytes);
  // Error when the file does not hold what was appended, or an array has rows left. Syncs it to the disk.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Reads `file`. Safe from several threads, one at a time.
class ArrayReader {
 public:
  explicit ArrayReader(const std::string& file);
  ~ArrayReader();

  bool has(const std::string& path) const;  // a dataset, not a group
  // Opens an array; handles count from 0. Error naming file and array when it is of another type, or more
  // than is stored. u8: unsigned bytes; i64: any integers; f32: that.
  struct Opened {
    size_t handle = 0;
    ArraySpec spec;
    std::optional<int64_t> offset;  // where its rows lie one after the other in the file, if they do
    int64_t rows_per_chunk = 0;     // 0: not in chunks
  };
  Opened open(const std::string& path, ArrayType);
  // `out` holds whole rows. Error naming file, array and row.
  void read(const Opened&, int64_t first_row, std::span<std::byte> out) const;

  // Attributes of the object at `path` ("/" is the root): nothing when there is none of the name, Error when
  // it is of another kind. A string counts as one; numbers of any type do.
  std::optional<std::vector<std::string>> strings(const std::string& path, const std::string& name) const;
  std::optional<std::vector<double>> numbers(const std::string& path, const std::string& name) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace antichain
