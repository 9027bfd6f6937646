// Reads and writes arrays in HDF5 files by rows, because these arrays are too large for memory. (Weights fit
// into memory; framework/files/hdf5.h has them.)
//
// The HDF5 library itself is trusted with a file's structure. What the structure claims is checked against
// the file's size first: no array has more bytes than are stored, and none needs a filter other than the
// library's own (deflate, shuffle, fletcher32). Soft links are followed within the file. A virtual dataset
// may be put together from datasets of other HDF5 files, for each of which the same holds; no other data lie
// outside of the file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace antichain {
namespace hdf5 {
struct VirtualSource;
}

enum class ArrayType { u8, i64, f32 };

struct ArraySpec {
  std::string path;            // "train/images": its group is made
  std::vector<int64_t> shape;  // rows first
  ArrayType type = ArrayType::u8;
  bool compressed = false;  // each row by itself, so that any one is read alone
  int64_t row_bytes() const;
};

// An Attribute stands at the root of the file.
struct Attribute {
  std::string name;
  std::variant<std::string, std::vector<std::string>, std::vector<double>> value;
};

// Writes a new `file`, which has its name once it is whole. The data are hashed on the way, and finish()
// reads them back, because HDF5 does not report every failure of a full disk.
class ArrayWriter {
 public:
  ArrayWriter(const std::string& file, std::vector<ArraySpec>);
  ~ArrayWriter();
  void set(const Attribute&);
  // Appends `bytes.size() / row_bytes()` rows. Throws Error naming the file when they can't be written.
  void append(size_t array, std::span<const std::byte> bytes);
  // Gives the file its name, with everything on the disk. Throws Error when it does not hold what was
  // appended, or an array lacks rows.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Reads `file`. Safe from several threads, which take turns.
class ArrayReader {
 public:
  explicit ArrayReader(const std::string& file);
  ~ArrayReader();

  // Says whether there is a dataset, not a group. Throws Error when the path leads through a link to another
  // file, or to nothing.
  bool has(const std::string& path) const;
  // Returns the type as which a dataset is read: u8 where its numbers are unsigned bytes, i64 where they are
  // other integers, else f32.
  ArrayType type_of(const std::string& path) const;
  // Opens an array; handles count from 0. Throws Error naming file and array when it is of another type, or
  // claims more bytes than are stored. u8 means unsigned bytes, i64 any integers, f32 float32.
  struct Opened {
    size_t handle = 0;
    ArraySpec spec;
    std::optional<int64_t> offset;     // where its rows lie one after the other in the file, if they do
    int64_t rows_per_chunk = 0;        // 0: not in chunks
    std::vector<std::string> sources;  // the other files that a virtual dataset is put together from
  };
  Opened open(const std::string& path, ArrayType);
  // `out` holds whole rows. Throws Error naming file, array and row.
  void read(const Opened&, int64_t first_row, std::span<std::byte> out) const;

  // Returns attributes of the object at `path` ("/" is the root); nothing when there is none of the name.
  // Throws Error when it is of another kind. A single string counts as a list of one; numbers of any type are
  // accepted.
  std::optional<std::vector<std::string>> strings(const std::string& path, const std::string& name) const;
  std::optional<std::vector<double>> numbers(const std::string& path, const std::string& name) const;

 private:
  Opened open_one(const std::string& path, ArrayType, std::vector<hdf5::VirtualSource>& sources);
  std::string of_object(const std::string& path) const;  // without soft links

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace antichain
