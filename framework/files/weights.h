// Weights are the tensors of a network outside it: an ordered list with names as PyTorch's state_dict has
// them ("layer1.0.conv1.weight"). HDF5 and safetensors files hold them. They are row-major, O x I x H x W;
// f32, or i64 for counts.
//
// A file is read whole and checked before its contents are used. It is written whole or not at all.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace antichain {

struct NamedTensor {
  std::string name;
  std::vector<int64_t> shape;  // {} is a scalar
  std::variant<std::vector<float>, std::vector<int64_t>> values;

  int64_t elements() const;  // as many as `values` has
  bool is_float() const { return values.index() == 0; }
  std::string shape_text() const;  // "64 x 3 x 7 x 7", or "a scalar"
  const char* type_text() const { return is_float() ? "float32" : "int64"; }
  const void* data() const;
  void* data();
  int64_t bytes() const { return elements() * (is_float() ? 4 : 8); }
  bool operator==(const NamedTensor&) const;  // bit for bit: NaN equals itself
};

// Returns a tensor of zeros. Throws Error naming it and `origin` when the shape has more elements than
// `most_bytes` could hold, a negative extent or more than 32 dimensions.
NamedTensor make_tensor(std::string name, std::vector<int64_t> shape, bool is_float, int64_t most_bytes,
                        const std::string& origin);

class Weights {
 public:
  // Throws Error naming the tensor when the name is taken, empty, or has a control character, or nothing or
  // dots alone between slashes (HDF5 reads a slash as a folder).
  void add(NamedTensor);
  const NamedTensor* find(std::string_view name) const;  // nullptr when there is none

  size_t size() const { return tensors_.size(); }
  auto begin() const { return tensors_.begin(); }
  auto end() const { return tensors_.end(); }
  const NamedTensor& operator[](size_t i) const { return tensors_[i]; }

 private:
  std::vector<NamedTensor> tensors_;
  std::map<std::string, size_t, std::less<>> places_;
};

// Find weights that nothing can be computed with: infinities, NaN, and variances below 0.
//
// Returns "'bn1.running_var' has a NaN (element 3 of 16)", or "" where all numbers are usable. Counts always
// are.
std::string describe_bad_number(const NamedTensor&);

// Throws Error (ExitCode::not_a_number) naming `origin` and the first tensor of these names with such a
// number.
void check_numbers(const Weights&, std::span<const std::string> names, const std::string& origin);

// Throws Error where a file is an ONNX file by its name: weights and networks come from one by the Python
// package alone (docs/bring-your-model.md).
constexpr const char* onnx_ending = ".onnx";
void refuse_onnx(const std::string& file);

enum class WeightFormat { hdf5, safetensors };

// Converts weights to the bytes of a file, and back. The format is recognised by content, whatever the name;
// errors call the file `origin`. Throws Error when it is neither format, damaged, or holds other than f32 and
// i64 tensors.
std::string encode(const Weights&, WeightFormat);
// A compressed file may unpack to thousands of times its size. `network_bytes`, where known, are those of the
// network that it is for; they limit the unpacked size to a few times themselves and the file's.
Weights decode(const std::string& bytes, const std::string& origin, int64_t network_bytes = 0);

// Returns whether weights are in several files: a checkpoint's, or those that an index lists, such as
// model.safetensors.index.json.
bool are_several_files(const std::string& path);
// A folder is read as a checkpoint, or as several of which the newest is taken
// (framework/files/checkpoint_weights.h). The files of an index lie beside it, and every tensor is where it
// says.
Weights read_weights(const std::string& file, int64_t network_bytes = 0);

void write_weights(const std::string& file, const Weights&, WeightFormat);

}  // namespace antichain
